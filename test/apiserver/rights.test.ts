import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { OrganizationRights } from '../../src/controllers/organization/organization-rights.ts';
import { configurationKinds, type PosthornKind } from '../../src/resources/kinds.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import type { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { KubernetesObjects } from '../../src/store/kubernetes/kubernetes-objects.ts';
import { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { everythingIn, firstOf, readyAs } from '../support/disabled-cases.ts';
import { eventually } from '../support/eventually.ts';
import { type HelmRelease, helmRelease } from '../support/helm-release.ts';
import { kubernetesApi } from '../support/kubernetes-api.ts';
import { freePort } from '../support/ports.ts';
import type { Program } from '../support/program.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';
import { scaledObjects } from '../support/scaled-objects.ts';
import { applyObject } from './api-client.ts';
import {
  type Attempt,
  attemptsAgainstPolicies,
  attemptsBeyondRights,
  foreignPoolObjects,
  fullname,
  bindingNames as names,
  namespace,
  type PoolKind,
  pathOfKind,
  rbac,
} from './forbidden-attempts.ts';
import { isAllowed } from './subject-access.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any;

let directory: string;
let plane: ControlPlane;
let redis: RedisServer;
let release: HelmRelease;
let controller: Program;
let api: Program;
let baseUrl: string;
let admin: KubernetesApi;
let store: KubernetesStore;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'posthorn-rights-'));
  [plane, redis] = await Promise.all([startControlPlane({ controllerManager: true }), startRedis()]);
  for (const name of [namespace, 'victim', 'guarded'])
    await makeNamespace(name, name === 'guarded' ? { 'posthorn.dev/protected': 'true' } : {});
  await plane.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', scaledObjects);
  release = helmRelease(plane, { release: 'relay', fullname, namespace, directory });
  await release.put('install');
  admin = kubernetesApi(plane);
  store = new KubernetesStore({ api: admin, clock: systemClock });
  controller = await startController();
  const port = await freePort();
  baseUrl = `http://127.0.0.1:${port}`;
  api = await release.start('api', { POSTHORN_REDIS_URL: redis.url, POSTHORN_PORT: String(port) });
  await apply({ apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'victim', name: 'own' }, stringData: { password: 'x' } });
  await organization('acme');
  await expectCondition('Organization', { name: 'default' }, 'True Ready');
  await eventually(async () => expect((await send('GET', 'destinations')).status).toBe(200), 60_000);
}, 180_000);
afterAll(async () => {
  await Promise.all([controller?.stop(), api?.stop(), admin?.close()]);
  await Promise.all([plane?.stop(), redis?.stop()]);
  rmSync(directory, { recursive: true });
}, 60_000);

const inNamespace = configurationKinds.filter((kind) => kind !== 'Organization');
const startController = () => release.start('controller', { POSTHORN_REDIS_URL: redis.url });
const makeNamespace = (name: string, labels: object = {}) =>
  plane.request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });

const apply = (object: Any) => applyObject(plane, object);

async function organization(name: string, ready = 'True Ready', within = name, spec: object = {}): Promise<void> {
  await apply({ apiVersion: 'posthorn.dev/v1alpha1', kind: 'Organization', metadata: { name }, spec: { namespace: within, ...spec } });
  await expectCondition('Organization', { name }, ready);
}

async function conditionOf(kind: PosthornKind, key: { name: string; namespace?: string }): Promise<Any> {
  const { status }: Any = await store.get(kind, key);
  return status?.conditions?.find(({ type }: Any) => type === 'Ready');
}
const expectCondition = (kind: PosthornKind, key: { name: string; namespace?: string }, wanted: string) =>
  eventually(async () => {
    const found = await conditionOf(kind, key);
    expect(`${found?.status} ${found?.reason}`).toBe(wanted);
  }, 60_000);

/** A request to the API with the key of the organization `default`, which is in the namespace `default`. */
async function send(method: string, path: string, body?: object): Promise<{ status: number; headers: Headers; body: Any }> {
  const key = Buffer.from((await release.secret(`${fullname}-api-key`))['api-key'] ?? '', 'base64').toString('utf8');
  const headers = { authorization: `Bearer ${key}`, ...(body !== undefined && { 'content-type': 'application/json' }) };
  const response = await fetch(`${baseUrl}/api/${path}`, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) };
}
const destination = (name: string, token = 'a-long-token-0000001') => ({
  name,
  url: 'https://hooks.example.com/in',
  authType: 'bearer',
  authConfig: { token },
});

const mayUseSecrets = (component: 'api' | 'controller', verb: string, within: string): Promise<boolean> =>
  isAllowed(plane, `system:serviceaccount:${namespace}:${fullname}-${component}`, { verb, resource: 'secrets', namespace: within });

const bindings = async (within: string): Promise<Any[]> => {
  const { items }: Any = await plane.request('GET', `${rbac}/namespaces/${within}/rolebindings`);
  return items;
};
const expectBindings = (within: string) =>
  eventually(async () => {
    const found = (await bindings(within)).map(({ metadata, roleRef, subjects }) => [metadata.name, roleRef.name, subjects]);
    expect(found).toEqual(
      ['api', 'controller'].map((component) => [
        `${fullname}-organization-${component}`,
        `${fullname}-organization-${component}`,
        [{ kind: 'ServiceAccount', name: `${fullname}-${component}`, namespace }],
      ]),
    );
  });

describe('rights where an organization lives', () => {
  test('rights where an organization lives are granted by the controller, and are enough for the work on Secrets', async () => {
    await expectBindings('acme');
    await expectBindings('default');
    const made = await send('POST', 'destinations', destination('Enough'));
    expect([made.status, made.body.authConfig]).toEqual([201, { token: '••••0001' }]);
    const key = { namespace: 'default', name: 'enough' };
    await expectCondition('Destination', key, 'True Ready');
    const changed = await send('PATCH', `destinations/${made.body.id}`, { authConfig: { token: 'another-long-token-0002' } });
    expect([changed.status, changed.body.authConfig]).toEqual([200, { token: '••••0002' }]);
    expect((await send('DELETE', `destinations/${made.body.id}`)).status).toBe(204);
    // A Secret that comes late is noticed by the watch in its namespace.
    const auth = { type: 'bearer', tokenSecretRef: { name: 'late', key: 'token' } };
    const late = { namespace: 'acme', name: 'late' };
    const http = { url: 'https://hooks.example.com/in', auth };
    await apply({ apiVersion: 'posthorn.dev/v1alpha1', kind: 'Destination', metadata: late, spec: { type: 'http', http } });
    await expectCondition('Destination', late, 'False SecretNotFound');
    await apply({ apiVersion: 'v1', kind: 'Secret', metadata: late, stringData: { token: 'value' } });
    await expectCondition('Destination', late, 'True Ready');
  }, 120_000);

  test('rights where an organization lives come back when they are deleted or their subject or role is changed', async () => {
    const [name = ''] = names;
    const path = `${rbac}/namespaces/acme/rolebindings/${name}`;
    await plane.request('DELETE', path);
    await expectBindings('acme');
    const subjects = [{ kind: 'User', name: 'mallory', apiGroup: 'rbac.authorization.k8s.io' }];
    await plane.request('PATCH', path, { subjects }, 'application/merge-patch+json');
    await expectBindings('acme');
    await plane.request('DELETE', path);
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' };
    await eventually(() =>
      plane.request('POST', `${rbac}/namespaces/acme/rolebindings`, { metadata: { name }, roleRef, subjects }).catch(() => {}),
    );
    await expectBindings('acme');
  }, 120_000);

  test('rights where an organization lives let the API list the Events of a resource', async () => {
    const spec = { sourceRef: { name: 'nobody' }, destinationRefs: [{ name: 'nobody' }] };
    await apply({ apiVersion: 'posthorn.dev/v1alpha1', kind: 'Route', metadata: { namespace: 'default', name: 'astray' }, spec });
    await eventually(async () => {
      const { id } = (await send('GET', 'routes/astray')).body;
      const { status, body } = await send('GET', `manifests/${id}/events`);
      const told = { type: 'Warning', message: expect.stringContaining('nobody'), count: 1, source: 'posthorn-controller' };
      expect([status, body.isKept, body.data]).toEqual([200, true, [expect.objectContaining(told)]]);
    }, 60_000);
    await plane.request('DELETE', '/apis/posthorn.dev/v1alpha1/namespaces/default/routes/astray');
  }, 90_000);

  test('rights where an organization lives go with the organization, also out of a namespace that stays', async () => {
    await makeNamespace('adopted');
    await organization('adopted');
    await expectBindings('adopted');
    await plane.request('DELETE', '/apis/posthorn.dev/v1alpha1/organizations/adopted');
    await eventually(async () => expect(await bindings('adopted')).toEqual([]));
    await eventually(async () =>
      expect((await store.get('Namespace', { name: 'adopted' })).metadata.labels).not.toHaveProperty('posthorn.dev/organization'),
    );
    await organization('short', 'True Ready', 'short', { deletionPolicy: 'Delete' });
    await plane.request('DELETE', '/apis/posthorn.dev/v1alpha1/organizations/short');
    await eventually(() => expect(store.get('Namespace', { name: 'short' })).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' }), 60_000);
  }, 120_000);

  test.each(['Retain', 'Delete'])(
    "what is in the namespace of an organization and not Posthorn's stays when it is deleted, and its resources by its policy alone: %s",
    async (deletionPolicy) => {
      const name = `keeps-${deletionPolicy.toLowerCase()}`;
      await organization(name, 'True Ready', name, { deletionPolicy });
      const { uid } = (await store.get('Namespace', { name })).metadata;
      const inside = { namespace: name, name: 'foreign' };
      const labels = { app: 'foreign' };
      const spec = {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'a', image: 'a:1' }] } },
      };
      await apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: inside, data: { a: 'b' } });
      await apply({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: inside, spec });
      for (const object of everythingIn(name)) await store.apply(object, { manager: 'test' });
      for (const kind of inNamespace) await readyAs(store, kind, { namespace: name, name: firstOf(kind) }, 'Ready');
      await plane.request('DELETE', `/apis/posthorn.dev/v1alpha1/organizations/${name}`);
      await eventually(() => expect(store.get('Organization', { name })).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' }), 60_000);
      const { metadata } = await store.get('Namespace', { name });
      expect([metadata.uid, metadata.deletionTimestamp, metadata.labels?.['posthorn.dev/organization']]).toEqual([
        uid,
        undefined,
        undefined,
      ]);
      for (const path of [`/api/v1/namespaces/${name}/configmaps/foreign`, `/apis/apps/v1/namespaces/${name}/deployments/foreign`])
        expect(await plane.request('GET', path)).toMatchObject({ metadata: { name: 'foreign' } });
      expect(await bindings(name)).toEqual([]);
      const kept = await Promise.all(
        inNamespace.map(async (kind) => [kind, (await store.list(kind, { namespace: name })).items.length > 0]),
      );
      expect(kept).toEqual(inNamespace.map((kind) => [kind, deletionPolicy === 'Retain']));
      const { items: secrets }: Any = await plane.request('GET', `/api/v1/namespaces/${name}/secrets`);
      const ofUsers = everythingIn(name).filter(({ kind }) => kind === 'Secret');
      expect(secrets.map(({ metadata: { name: secret } }: Any) => secret)).toEqual(
        expect.arrayContaining(ofUsers.map((each) => each.metadata.name)),
      );
      const wanted = deletionPolicy === 'Retain' ? ['Retained', 'stay'] : ['NamespaceKept', 'ConfigMap foreign, '];
      await eventually(async () => {
        const { items }: Any = await plane.request('GET', '/api/v1/events');
        const told = items.filter(({ involvedObject }: Any) => involvedObject.kind === 'Organization' && involvedObject.name === name);
        expect(told).toContainEqual(expect.objectContaining({ reason: wanted[0], message: expect.stringContaining(wanted[1] ?? '') }));
      }, 30_000);
    },
    150_000,
  );

  test('rights where an organization lives are refused in the namespace of the installation and in protected ones, and the Organization reports it', async () => {
    for (const within of [namespace, 'guarded']) {
      await organization(`in-${within}`, 'False NamespaceProtected', within);
      expect((await bindings(within)).filter(({ metadata }) => names.includes(metadata.name))).toEqual([]);
      expect((await store.get('Namespace', { name: within })).metadata.labels).not.toHaveProperty('posthorn.dev/organization');
      await plane.request('DELETE', `/apis/posthorn.dev/v1alpha1/organizations/in-${within}`);
    }
  }, 180_000);

  test('rights where an organization lives of two installations are beside each other', async () => {
    const objects = new KubernetesObjects({ api: admin, clock: systemClock });
    const installation = { name: 'posthorn', namespace: 'posthorn-system' };
    const other = new OrganizationRights({ objects, store, installation, clock: systemClock });
    const acme = await store.get('Organization', { name: 'acme' });
    expect(await other.ensure(acme)).toEqual({ state: 'granted' });
    expect((await bindings('acme')).map(({ metadata }) => metadata.name)).toEqual([
      'posthorn-organization-api',
      'posthorn-organization-controller',
      ...names,
    ]);
    await other.remove(acme);
    await expectBindings('acme');
  });
});

test('the controller makes what the workers of the default DeliveryPool run by', async () => {
  const name = 'posthorn-delivery-default';
  for (const path of [`/apis/apps/v1/namespaces/${namespace}/deployments`, `/api/v1/namespaces/${namespace}/services`])
    await eventually(() => plane.request('GET', `${path}/${name}`), 60_000);
}, 120_000);

test('the controller makes, changes and deletes the optional objects of a DeliveryPool', async () => {
  const key = { namespace, name: 'scaled' };
  const pool = (spec: object) => apply({ apiVersion: 'posthorn.dev/v1alpha1', kind: 'DeliveryPool', metadata: key, spec });
  const autoscaling = { min: 1, max: 2, targetBacklogPerPod: 100 };
  const expectObjects = (...wanted: PoolKind[]) =>
    eventually(async () => {
      const kinds: PoolKind[] = ['PodDisruptionBudget', 'NetworkPolicy', 'HorizontalPodAutoscaler', 'ScaledObject', 'Deployment'];
      const there = kinds.map((kind) =>
        plane.request('GET', `${pathOfKind(kind)}/posthorn-delivery-scaled`).then(
          () => kind,
          () => null,
        ),
      );
      expect((await Promise.all(there)).filter((kind) => kind !== null)).toEqual(wanted);
    }, 60_000);
  await pool({ autoscaling: { mode: 'hpa', ...autoscaling } });
  await expectObjects('PodDisruptionBudget', 'NetworkPolicy', 'HorizontalPodAutoscaler', 'Deployment');
  await pool({ autoscaling: { mode: 'keda', ...autoscaling }, networkPolicy: { enabled: false } });
  await expectObjects('PodDisruptionBudget', 'ScaledObject', 'Deployment');
  await pool({ replicas: 1 });
  await expectObjects('PodDisruptionBudget', 'NetworkPolicy', 'Deployment');
  expect(controller.output()).not.toContain('denied request');
}, 180_000);

describe('rights that are missing for a while', () => {
  test('after an upgrade from cluster-wide rights are 503 until the new controller has granted them, and nothing is lost', async () => {
    const { body: before } = await send('POST', 'destinations', destination('Before'));
    const key = { namespace: 'default', name: 'before' };
    await expectCondition('Destination', key, 'True Ready');
    const condition = await conditionOf('Destination', key);
    // As Helm leaves it: the former right is gone, and no controller of the new release leads yet.
    await controller.stop();
    for (const name of names) await plane.request('DELETE', `${rbac}/namespaces/default/rolebindings/${name}`);
    await eventually(async () => expect(await mayUseSecrets('api', 'patch', 'default')).toBe(false));
    const refused = await eventually(async () => {
      const answer = await send('POST', 'destinations', destination('Between'));
      expect(answer.status).toBe(503);
      return answer;
    });
    expect(refused.body).toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringMatching(/^The right on Secrets in the namespace default is not granted yet/),
    });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await send('GET', 'destinations/between')).status).toBe(404);
    expect((await send('PATCH', `destinations/${before.id}`, { authConfig: { token: 'another-long-token-0002' } })).status).toBe(503);
    expect((await send('GET', `destinations/${before.id}`)).status).toBe(200);

    controller = await startController();
    await expectBindings('default');
    const made = await eventually(async () => {
      const answer = await send('POST', 'destinations', destination('Between'));
      expect(answer.status).toBe(201);
      return answer;
    }, 60_000);
    expect(made.body.slug).toBe('between');
    await expectCondition('Destination', { namespace: 'default', name: 'between' }, 'True Ready');
    expect((await send('GET', `destinations/${before.id}`)).body.authConfig).toEqual({ token: '••••0001' });
    expect(await conditionOf('Destination', key)).toEqual(condition);
  }, 180_000);

  test('change no condition of a resource, and the Organization reports it after half a minute', async () => {
    const key = { namespace: 'acme', name: 'kept' };
    const auth = { type: 'bearer', tokenSecretRef: { name: 'kept', key: 'token' } };
    const destinationWith = (url: string) =>
      apply({ apiVersion: 'posthorn.dev/v1alpha1', kind: 'Destination', metadata: key, spec: { type: 'http', http: { url, auth } } });
    await apply({ apiVersion: 'v1', kind: 'Secret', metadata: key, stringData: { token: 'value' } });
    await destinationWith('https://one.example.com/');
    await expectCondition('Destination', key, 'True Ready');
    const path = `${rbac}/clusterroles/${fullname}-organization-controller`;
    const { metadata, rules }: Any = await plane.request('GET', path);
    await plane.request('PATCH', path, { rules: [] }, 'application/merge-patch+json');
    await eventually(async () => expect(await mayUseSecrets('controller', 'get', 'acme')).toBe(false));
    const before = await conditionOf('Destination', key);
    await destinationWith('https://two.example.com/');
    await expectCondition('Organization', { name: 'acme' }, 'False RightsNotGranted');
    expect(await conditionOf('Destination', key)).toEqual(before);
    await plane.request('PATCH', path, { metadata: { name: metadata.name }, rules }, 'application/merge-patch+json');
    await expectCondition('Organization', { name: 'acme' }, 'True Ready');
    await eventually(async () => expect((await conditionOf('Destination', key)).observedGeneration).toBe(2), 60_000);
    expect((await conditionOf('Destination', key)).lastTransitionTime).toBe(before.lastTransitionTime);
  }, 180_000);
});

describe('the ServiceAccounts', () => {
  const clients = {} as Record<Attempt['by'], KubernetesApi>;
  beforeAll(async () => {
    await apply({ apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'acme', name: 'own' }, type: 'Opaque', stringData: { a: 'b' } });
    for (const { method, path, body } of foreignPoolObjects) await plane.request(method, path, body, 'application/apply-patch+yaml');
    await expectBindings('acme');
    for (const by of ['api', 'controller'] as const)
      clients[by] = kubernetesApi({ ...plane, kubeconfigPath: await release.kubeconfigOf(`${fullname}-${by}`) });
  });
  afterAll(() => Promise.all(Object.values(clients).map((client) => client.close())));

  async function attempt({ by, method, path, body }: Attempt): Promise<string> {
    try {
      const contentType = method === 'PATCH' ? 'application/apply-patch+yaml' : 'application/json';
      await clients[by].request(method, path, { ...(body !== undefined && { body, contentType }) });
      return 'done';
    } catch (error) {
      return `${(error as Any).code} ${(error as Error).message}`;
    }
  }

  test.each([...attemptsAgainstPolicies, ...attemptsBeyondRights])('the ServiceAccounts are refused: %s', async (_what, tried) => {
    expect(await attempt(tried)).toMatch(/^FORBIDDEN /);
  });

  describe('with every right that RBAC knows', () => {
    beforeAll(async () => {
      const subjects = ['api', 'controller'].map((by) => ({ kind: 'ServiceAccount', name: `${fullname}-${by}`, namespace }));
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' };
      await apply({
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: 'too-much' },
        roleRef,
        subjects,
      });
      for (const by of ['api', 'controller'] as const)
        await eventually(async () => expect(await attempt({ by, method: 'GET', path: '/api/v1/secrets' })).toBe('done'));
    });

    test.each(attemptsAgainstPolicies)('are refused by a policy: %s', async (_what, tried) => {
      const answer = await attempt(tried);
      expect(answer).toMatch(/^FORBIDDEN .*ValidatingAdmissionPolicy 'relay-posthorn-service-account-/);
      expect(answer).not.toContain('resulted in error');
    });
  });
});
