import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { quotaKind } from '../../src/controllers/organization/organization-quota.ts';
import { RightsPending } from '../../src/core/rights-pending.ts';
import type { Kind } from '../../src/resources/kinds.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import type { ClusterKind, ClusterObject } from '../../src/store/cluster-objects.ts';
import type { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { KubernetesObjects } from '../../src/store/kubernetes/kubernetes-objects.ts';
import { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import type { Key, ListQuery, Page } from '../../src/store/store.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { controllerApi } from '../support/controller-api.ts';
import { type RunningControllers, startControllers } from '../support/controllers.ts';
import { eventually } from '../support/eventually.ts';
import { kubernetesApi } from '../support/kubernetes-api.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

let plane: ControlPlane;
let redis: RedisServer;
let api: KubernetesApi;
/** With the rights that the chart gives to the controller. */
let controllersApi: KubernetesApi;
let store: KubernetesStore;
let objects: KubernetesObjects;
let controllers: RunningControllers;
let namespace: string;
let runs = 0;

beforeAll(async () => {
  // The controller manager counts what is there; without it a ResourceQuota has no effect.
  [plane, redis] = await Promise.all([startControlPlane({ crds: true, controllerManager: true }), startRedis()]);
  await plane.request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'posthorn-system' } });
  [api, controllersApi] = [kubernetesApi(plane), await controllerApi(plane)];
  // As a controller of an installation binds it in the namespace of each organization.
  await plane.request('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: 'everywhere' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'posthorn-organization-controller' },
    subjects: [{ kind: 'ServiceAccount', name: 'posthorn-controller', namespace: 'posthorn-system' }],
  });
  store = new KubernetesStore({ api, clock: systemClock });
  objects = new KubernetesObjects({ api: controllersApi, clock: systemClock });
  // Rights count a moment after they are given.
  await eventually(() => objects.get(quotaKind, { namespace: 'default', name: 'posthorn' }));
}, 120_000);
afterAll(async () => {
  await Promise.all([api, controllersApi].map((each) => each.close()));
  await Promise.all([plane.stop(), redis.stop()]);
});
beforeEach(() => {
  namespace = `org-${++runs}`;
  controllers = start();
});
afterEach(() => controllers.stop());

function start(options: Partial<Parameters<typeof startControllers>[0]> = {}): RunningControllers {
  return startControllers({ store, objects, redis: redis.client, prefix: `run${runs}:`, ...options });
}

const organization = (spec: object) =>
  store.apply({ kind: 'Organization', metadata: { name: namespace }, spec: { namespace, ...spec } }, { manager: 'test', force: true });
const filter = (name: string) =>
  store.create(
    { kind: 'Filter', metadata: { namespace, name }, spec: { conditions: [{ field: 'payload.a', operator: 'exists' }] } },
    { manager: 'test' },
  );
const quota = (): Promise<ClusterObject | null> => objects.get(quotaKind, { namespace, name: 'posthorn' });
const makeNamespace = () =>
  plane.request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });

const withinMs = 60_000;
const expectQuota = (most: string): Promise<void> =>
  eventually(async () => {
    const found = await quota();
    expect(found?.['spec']).toMatchObject({ hard: { 'count/filters.posthorn.dev': most, 'count/routes.posthorn.dev': most } });
  }, withinMs);
const expectReady = (ready: string): Promise<void> =>
  eventually(async () => {
    const { status } = await store.get('Organization', { name: namespace });
    const found = status?.conditions?.find(({ type }) => type === 'Ready');
    expect(`${found?.status} ${found?.reason}`).toBe(ready);
  }, withinMs);

test('a quota is not requested before the rights in the namespace count', async () => {
  await controllers.stop();
  const asked: string[] = [];
  // As an API server that sees a RoleBinding late.
  class LateStore extends KubernetesStore {
    override async list<K extends Kind>(kind: K, query: ListQuery = {}): Promise<Page<K>> {
      if (kind === 'Secret' && query.namespace === namespace && asked.push('rights') <= 3)
        throw new RightsPending(namespace, new Error('secrets is forbidden'));
      return super.list(kind, query);
    }
  }
  class WatchedObjects extends KubernetesObjects {
    override async get(kind: ClusterKind, key: Key): Promise<ClusterObject | null> {
      if (kind === quotaKind) asked.push('quota');
      return super.get(kind, key);
    }
  }
  controllers = start({
    store: new LateStore({ api, clock: systemClock }),
    objects: new WatchedObjects({ api: controllersApi, clock: systemClock }),
    installation: { name: 'posthorn', namespace: 'posthorn-system' },
  });
  await organization({ plan: 'free' });
  await expectQuota('200');
  expect(asked.slice(0, 5)).toEqual(['rights', 'rights', 'rights', 'rights', 'quota']);
});

test('changes of the quota, and its deletion, are undone', async () => {
  await organization({ plan: 'free' });
  await expectQuota('200');
  const path = `/api/v1/namespaces/${namespace}/resourcequotas/posthorn`;
  const raised = { spec: { hard: { 'count/filters.posthorn.dev': '9999' } } };
  await plane.request('PATCH', path, raised, 'application/merge-patch+json');
  await expectQuota('200');
  await plane.request('DELETE', path);
  await expectQuota('200');
});

test('a quota of that name with another owner is left alone, and the organization reports it', async () => {
  await makeNamespace();
  const foreign = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'posthorn' }, spec: { hard: { pods: '7' } } };
  await plane.request('POST', `/api/v1/namespaces/${namespace}/resourcequotas`, foreign);
  await organization({ plan: 'free' });
  await expectReady('False QuotaNotOwned');
  expect((await quota())?.['spec']).toEqual({ hard: { pods: '7' } });
});

test('an organization that is deleted takes its quota out of a namespace that was there before it', async () => {
  await makeNamespace();
  await organization({ plan: 'free' });
  await expectQuota('200');
  await store.delete('Organization', { name: namespace });
  await eventually(
    async () => expect(store.get('Organization', { name: namespace })).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' }),
    withinMs,
  );
  await eventually(async () => expect(await quota()).toBeNull(), withinMs);
  expect(await plane.request('GET', `/api/v1/namespaces/${namespace}`)).toMatchObject({ status: { phase: 'Active' } });
});

test('a quota is not made before the controller manager counts the kinds: until then it would refuse every object', async () => {
  await controllers.stop();
  const startedAt = performance.now();
  controllers = start({ countedAfterMs: 2500 });
  await organization({ plan: 'free' });
  await expectReady('True Ready');
  await expectQuota('200');
  expect(performance.now() - startedAt).toBeGreaterThan(2500);
});

test('an organization has as many resources of each kind as its limit, made by any client; then its plan decides, or nothing', async () => {
  await organization({ plan: 'free', limits: { objectsPerKind: 2 } });
  await expectQuota('2');
  await eventually(async () => expect((await quota())?.['status']).toMatchObject({ used: { 'count/filters.posthorn.dev': '0' } }), 45_000);
  await filter('one');
  await filter('two');
  await expect(filter('three')).rejects.toMatchObject({ code: 'FORBIDDEN', message: expect.stringContaining('exceeded quota: posthorn') });
  await organization({ plan: 'business' });
  await expectQuota('20k');
  await eventually(() => filter('three'), withinMs);
  await organization({ plan: 'enterprise' });
  await eventually(async () => expect(await quota()).toBeNull(), withinMs);
  await expectReady('True Ready');
});
