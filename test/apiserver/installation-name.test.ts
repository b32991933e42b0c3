import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type ControlPlaneWorld, startControlPlaneWorld } from '../e2e/control-plane-world.ts';
import { eventually } from '../support/eventually.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any;

let world: ControlPlaneWorld;

beforeAll(async () => {
  world = await startControlPlaneWorld();
  world.start('controller');
}, 120_000);
afterAll(() => world?.stop());

const get = (path: string): Promise<Any> => world.controlPlane.request('GET', path);
const organization = (name: string, spec: object) =>
  world.apply([{ apiVersion: 'posthorn.dev/v1alpha1', kind: 'Organization', metadata: { name }, spec: { namespace: name, ...spec } }]);

test('a controller without a name of its installation grants the rights of config/rbac, and keeps quotas', async () => {
  await organization('acme', { plan: 'free' });
  await eventually(async () => {
    const { items } = await get('/apis/rbac.authorization.k8s.io/v1/namespaces/acme/rolebindings');
    expect(items.map(({ metadata, subjects }: Any) => [metadata.name, subjects])).toEqual(
      ['api', 'controller'].map((component) => [
        `posthorn-organization-${component}`,
        [{ kind: 'ServiceAccount', name: `posthorn-${component}`, namespace: 'posthorn-system' }],
      ]),
    );
  }, 60_000);
  // A minute after its start the controllers believe that each kind is counted.
  await eventually(async () => {
    const { spec } = await get('/api/v1/namespaces/acme/resourcequotas/posthorn');
    expect(spec.hard).toMatchObject({ 'count/filters.posthorn.dev': '200' });
  }, 120_000);
}, 200_000);

test('an installation lets no organization have the namespace of the installation', async () => {
  await organization('thief', { namespace: 'posthorn-system' });
  await eventually(async () => {
    const { status } = await get('/apis/posthorn.dev/v1alpha1/organizations/thief');
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'ResolvedRefs', status: 'False', reason: 'NamespaceProtected' }),
    );
  }, 60_000);
  const { metadata } = await get('/api/v1/namespaces/posthorn-system');
  expect(metadata.labels).not.toHaveProperty('posthorn.dev/organization');
  const { items } = await get('/apis/rbac.authorization.k8s.io/v1/namespaces/posthorn-system/rolebindings');
  expect(items.filter(({ metadata: { name } }: Any) => name.startsWith('posthorn-organization-'))).toEqual([]);
}, 150_000);
