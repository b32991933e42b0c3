import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type ControlPlaneWorld, startControlPlaneWorld } from '../e2e/control-plane-world.ts';
import type { Manifest } from '../e2e/world.ts';
import { eventually } from '../support/eventually.ts';
import { ownEventData } from '../support/own-events.ts';

const apiVersion = 'posthorn.dev/v1alpha1';
const namespace = 'acme';
const secretPath = `/api/v1/namespaces/${namespace}/secrets/signing`;
const sourcePath = `/apis/posthorn.dev/v1alpha1/namespaces/${namespace}/sources/signed`;
const signingSecretRef = { name: 'signing', key: 'secret' };
let world: ControlPlaneWorld;

const object = (kind: string, name: string, spec: object): Manifest => ({ apiVersion, kind, metadata: { name, namespace }, spec });
const secret = (values: object) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'signing', namespace }, ...values });
const whsec = (byte: number): string => `whsec_${Buffer.alloc(32, byte).toString('base64')}`;
const encoded = (text: string): string => Buffer.from(text).toString('base64');

beforeAll(async () => {
  world = await startControlPlaneWorld();
  world.start('controller', { environment: { POSTHORN_SHARDS: '1' } });
  const organization = { apiVersion, kind: 'Organization', metadata: { name: namespace }, spec: { namespace } };
  await world.apply([organization]);
  await world.waitUntilReady(organization);
  const signed = object('Source', 'signed', { signingSecretRef });
  const target = object('Destination', 'signed', { http: { url: 'https://shop.example/', signingSecretRef } });
  await world.apply([secret({ stringData: { secret: whsec(1), other: whsec(5) } }), object('Source', 'own', { provider: 'posthorn' })]);
  await world.apply([signed, target]);
  for (const each of [signed, target, object('Source', 'own', {})]) await world.waitUntilReady(each);
}, 180_000);
afterAll(() => world?.stop());

const patch = (path: string, manager: string, body: object) =>
  world.controlPlane.request('PATCH', `${path}?fieldManager=${manager}`, body, 'application/merge-patch+json');
/** The field managers that rotated the secrets of a kind, in the order of the rotations. */
const managers = async (kind: string): Promise<unknown[]> =>
  (await ownEventData(world.redis.client, 'posthorn:')).filter((data) => data['kind'] === kind).map(({ by }) => by);
const expectManagers = (kind: string, wanted: string[]): Promise<void> =>
  eventually(async () => expect(await managers(kind)).toEqual(wanted), 60_000);

test('secret.rotated names the field manager that changed the Secret or the reference, with the rights of the controller alone', async () => {
  // Times of field managers have whole seconds.
  await new Promise((resolve) => setTimeout(resolve, 1100));
  await patch(secretPath, 'kubectl-edit', { data: { secret: encoded(whsec(2)) } });
  for (const kind of ['source', 'destination']) await expectManagers(kind, ['kubectl-edit']);
  await new Promise((resolve) => setTimeout(resolve, 1100));
  await world.apply([secret({ stringData: { secret: whsec(3), other: whsec(5) } })]);
  for (const kind of ['source', 'destination']) await expectManagers(kind, ['kubectl-edit', 'kubectl']);
  await new Promise((resolve) => setTimeout(resolve, 1100));
  await patch(sourcePath, 'argocd-controller', { spec: { signingSecretRef: { key: 'other' } } });
  await expectManagers('source', ['kubectl-edit', 'kubectl', 'argocd-controller']);
  expect(world.forbidden()).toEqual([]);
}, 180_000);
