import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { clusterKinds, type OwnedKind } from '../../src/compile/delivery-pool/cluster-kinds.ts';
import type { SpecInputOf } from '../../src/resources/kinds.ts';
import type { ClusterKind } from '../../src/store/cluster-objects.ts';
import type { KubernetesObjects } from '../../src/store/kubernetes/kubernetes-objects.ts';
import type { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { configMaps, namespace, PoolWorld, pods, secrets, workerSecret } from '../support/pool-world.ts';
import { scaledObjects } from '../support/scaled-objects.ts';

let world: PoolWorld;
let plane: ControlPlane;
let store: KubernetesStore;
let objects: KubernetesObjects;

beforeAll(async () => {
  world = await PoolWorld.start();
  ({ plane, store, objects } = world);
}, 120_000);
afterAll(() => world?.stop());

const applyObject = (kind: ClusterKind, name: string, fields: Record<string, unknown>) => world.applyObject(kind, name, fields);
const apply = (name: string, spec: SpecInputOf<'DeliveryPool'>) => world.apply(name, spec);
const pool = (name: string) => world.pool(name);
const owned = (kind: OwnedKind, name: string) => world.owned(kind, name);
const shows = (name: string, type: string, text: string) => world.shows(name, type, text);
const makePodsReady = (name: string) => world.makePodsReady(name);
const measured = (name: string) => world.measured(name);

const hashOf = async (name: string): Promise<unknown> =>
  (await owned('Deployment', name)) === null
    ? null
    : JSON.stringify((await owned('Deployment', name))?.['spec']).match(/config-hash":"(\w+)"/)?.[1];
const replicasOf = async (name: string): Promise<unknown> =>
  JSON.parse(JSON.stringify((await owned('Deployment', name))?.['spec'] ?? { replicas: null })).replicas;

describe('a pool', () => {
  test('a pool becomes a Deployment whose pods restricted PodSecurity admits, with what belongs to it, and is Ready when they are', async () => {
    await apply('plain', { replicas: 3, concurrency: 7, egress: { allowedCidrs: ['10.9.0.0/16'] } });
    await eventually(async () => {
      const { items } = await objects.list(pods, { namespace, labelSelector: 'posthorn.dev/delivery-pool=plain' });
      expect(items).toHaveLength(3);
    });
    const deployment = await owned('Deployment', 'plain');
    expect(deployment?.metadata.ownerReferences).toMatchObject([{ kind: 'DeliveryPool', name: 'plain', controller: true }]);
    expect(deployment?.['spec']).toMatchObject({
      replicas: 3,
      template: {
        spec: {
          automountServiceAccountToken: false,
          imagePullSecrets: [{ name: 'registry' }],
          containers: [
            {
              image: 'posthorn:test',
              args: ['delivery'],
              envFrom: [{ configMapRef: { name: 'settings' } }, { secretRef: { name: 'posthorn' } }],
              env: [
                { name: 'POSTHORN_DELIVERY_POOL', value: 'plain' },
                { name: 'POSTHORN_DRAIN_SECONDS', value: '25' },
                { name: 'POSTHORN_DELIVERY_CONCURRENCY', value: '7' },
                { name: 'POSTHORN_EGRESS_ALLOWED_CIDRS', value: '10.9.0.0/16' },
              ],
              volumeMounts: [{ mountPath: '/etc/posthorn/egress', readOnly: true }],
            },
          ],
        },
      },
    });
    const policy = JSON.stringify((await owned('NetworkPolicy', 'plain'))?.['spec']);
    for (const text of ['"port":6380', '"port":7001', '"cidr":"10.9.0.0/16"', '"169.254.0.0/16"']) expect(policy).toContain(text);
    expect((await owned('ServiceAccount', 'plain'))?.['automountServiceAccountToken']).toBe(false);
    expect((await owned('Service', 'plain'))?.['spec']).toMatchObject({ ports: [{ name: 'ops', port: 9090 }] });
    expect((await owned('PodDisruptionBudget', 'plain'))?.['spec']).toMatchObject({ maxUnavailable: 1 });

    await shows('plain', 'Available', 'False MinimumReplicasUnavailable');
    await eventually(async () =>
      expect(await measured('plain')).toEqual({ wanted: 3, ready: 0, available: 0, accepted: 1, backlog_messages: 0 }),
    );
    await makePodsReady('plain');
    const { status } = await shows('plain', 'Ready', 'True Ready');
    expect(status).toMatchObject({ replicas: 3, readyReplicas: 3, desiredReplicas: 3, backlog: 0, oldestMessageAgeSeconds: 0 });
    expect(status?.conditions?.map(({ type }) => type).sort()).toEqual(['Accepted', 'Available', 'Progressing', 'Ready']);
    expect(await measured('plain')).toEqual({ wanted: 3, ready: 3, available: 1, accepted: 1, backlog_messages: 0 });
    const scale = (await plane.request('GET', `/apis/posthorn.dev/v1alpha1/namespaces/${namespace}/deliverypools/plain/scale`)) as object;
    expect(scale).toMatchObject({ spec: { replicas: 3 }, status: { replicas: 3, selector: status?.selector } });
  });

  test('the pods of a pool have what its template says of files, names and DNS', async () => {
    const podTemplate = {
      volumes: [{ name: 'more', configMap: { name: 'more', items: [{ key: 'a', path: 'b' }] } }],
      volumeMounts: [{ name: 'more', mountPath: '/etc/more' }],
      hostAliases: [{ ip: '10.0.0.9', hostnames: ['erp.example.com'] }],
      dnsConfig: { options: [{ name: 'ndots', value: '2' }] },
    };
    await apply('furnished', { replicas: 1, podTemplate });
    await eventually(async () => expect((await owned('Deployment', 'furnished'))?.['spec']).toMatchObject({ replicas: 1 }));
    const { volumes, hostAliases, dnsConfig } = podTemplate;
    expect((await owned('Deployment', 'furnished'))?.['spec']).toMatchObject({
      template: { spec: { volumes: [{ name: 'files-0' }, ...volumes], hostAliases, dnsConfig } },
    });
    const refusing = (spec: SpecInputOf<'DeliveryPool'>) => expect(apply('furnished', { replicas: 1, ...spec })).rejects;
    await refusing({ podTemplate: { volumes: [{ name: 'none' }] } }).toThrow('must have one of configMap and secret');
    await refusing({ podTemplate: { volumeMounts: [{ name: 'none', mountPath: '/a' }] } }).toThrow('must each name one of volumes');
    await store.delete('DeliveryPool', { namespace, name: 'furnished' });
  });

  test('a pool is left alone once it is as it should be', async () => {
    const versions = async (): Promise<unknown[]> => [
      (await pool('plain')).metadata.resourceVersion,
      ...(await Promise.all((['Deployment', 'Service', 'NetworkPolicy'] as const).map((kind) => owned(kind, 'plain')))).map(
        (object) => object?.metadata.resourceVersion,
      ),
    ];
    const quiet = async (): Promise<unknown[]> => {
      const before = await versions();
      await sleep(2000);
      expect(await versions()).toEqual(before);
      return before;
    };
    const settled = await eventually(quiet);
    expect(await quiet()).toEqual(settled);
  });

  test('a pool has what was changed or deleted of its objects again', async () => {
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments/posthorn-delivery-plain`;
    await plane.request(
      'PATCH',
      path,
      { spec: { replicas: 9, template: { spec: { enableServiceLinks: true } } } },
      'application/merge-patch+json',
    );
    await plane.request('DELETE', `/api/v1/namespaces/${namespace}/services/posthorn-delivery-plain`);
    await eventually(async () => {
      expect((await owned('Deployment', 'plain'))?.['spec']).toMatchObject({
        replicas: 3,
        template: { spec: { enableServiceLinks: false } },
      });
      expect(await owned('Service', 'plain')).not.toBeNull();
    });
  });

  test('a pool has new pods when a Secret or a file that they read changes, and not for a label', async () => {
    const first = await hashOf('plain');
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    await applyObject(secrets, 'posthorn', {
      metadata: { namespace, name: 'posthorn', labels: { seen: 'yes' } },
      ...workerSecret,
    });
    await applyObject(configMaps, 'egress-ca', { data: { 'ca.pem': 'two' } });
    const second = await eventually(async () => {
      const hash = await hashOf('plain');
      expect(hash).not.toBe(first);
      return hash;
    });
    await applyObject(configMaps, 'egress-ca', { data: { 'ca.pem': 'one' } });
    await eventually(async () => expect(await hashOf('plain')).toBe(first));
    expect(second).not.toBe(first);
  });

  test('a pool opens its NetworkPolicy for what an organization allows, and has none when that is switched off', async () => {
    await store.apply(
      { kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme', egress: { allowedCidrs: ['10.44.0.0/16'] } } },
      { manager: 'test', force: true },
    );
    await eventually(async () => expect(JSON.stringify(await owned('NetworkPolicy', 'plain'))).toContain('10.44.0.0/16'));
    await apply('plain', { replicas: 3, networkPolicy: { enabled: false } });
    await eventually(async () => expect(await owned('NetworkPolicy', 'plain')).toBeNull());
  });

  test('a pool touches no object that is not its own, names it, and continues when it is gone', async () => {
    const selector = { matchLabels: { app: 'theirs' } };
    await applyObject(clusterKinds.PodDisruptionBudget, 'posthorn-delivery-taken', { spec: { minAvailable: 1, selector } });
    await apply('taken', { replicas: 1 });
    const { status } = await shows('taken', 'Accepted', 'False NotOwned');
    expect(status?.conditions?.find(({ type }) => type === 'Accepted')?.message).toContain('PodDisruptionBudget posthorn-delivery-taken');
    expect(await owned('Deployment', 'taken')).toBeNull();
    const theirs = await owned('PodDisruptionBudget', 'taken');
    expect(theirs?.['spec']).toMatchObject({ selector });
    await objects.delete(clusterKinds.PodDisruptionBudget, { namespace, name: 'posthorn-delivery-taken' }, theirs?.metadata.uid ?? '');
    await shows('taken', 'Accepted', 'True Accepted');
    expect(await measured('taken')).toMatchObject({ accepted: 1 });
    await store.delete('DeliveryPool', { namespace, name: 'taken' });
  });

  test('a pool says which Secret is missing, what its workers would refuse, and what the API server does, without a secret', async () => {
    await apply('broken', { replicas: 1, redis: { secretRef: { name: 'own-redis' } } });
    await shows('broken', 'Accepted', 'False SecretNotFound');
    expect(await measured('broken')).toMatchObject({ wanted: 0, ready: 0, available: 0, accepted: 0 });
    await applyObject(secrets, 'own-redis', { stringData: { POSTHORN_REDIS_URL: 'redis://:canary-password@a b' } });
    const { status } = await shows('broken', 'Ready', 'False InvalidConfiguration');
    expect(JSON.stringify(status)).toContain('POSTHORN_REDIS_URL');
    expect(JSON.stringify(status)).not.toContain('canary-password');
    await apply('broken', { replicas: 1, podTemplate: { affinity: { nodeAffinity: 'everywhere' } } });
    await shows('broken', 'Stalled', 'True Invalid');
    expect(await owned('Deployment', 'broken')).toBeNull();
    await store.delete('DeliveryPool', { namespace, name: 'broken' });
    await eventually(async () => expect(pool('broken')).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' }));
  });
});

describe('the number of pods', () => {
  test('the number of pods follows the backlog where the controller decides it', async () => {
    await apply('scaled', { autoscaling: { min: 2, max: 6, targetBacklogPerPod: 100 } });
    await eventually(async () => expect(await replicasOf('scaled')).toBe(2));
    world.backlog = { messages: 450, oldestAgeSeconds: 3 };
    await apply('scaled', { autoscaling: { min: 2, max: 7, targetBacklogPerPod: 100 } });
    await eventually(async () => expect(await replicasOf('scaled')).toBe(5));
    await eventually(async () => expect((await pool('scaled')).status).toMatchObject({ backlog: 450, oldestMessageAgeSeconds: 3 }));
    world.backlog = { messages: 0, oldestAgeSeconds: 0 };
  });

  test('the number of pods is left to a HorizontalPodAutoscaler, begins where it was, and comes back', async () => {
    await apply('scaled', { autoscaling: { mode: 'hpa', min: 3, max: 9, targetBacklogPerPod: 100 } });
    const autoscaler = await eventually(async () => {
      const found = await owned('HorizontalPodAutoscaler', 'scaled');
      expect(found).not.toBeNull();
      return found;
    });
    expect(autoscaler?.['spec']).toMatchObject({
      minReplicas: 3,
      maxReplicas: 9,
      metrics: [{ type: 'External', external: { metric: { name: 'posthorn_backlog_messages' }, target: { averageValue: '100' } } }],
    });
    await eventually(async () => {
      const fields = (await owned('Deployment', 'scaled'))?.metadata.managedFields?.filter(
        ({ manager }) => manager === 'posthorn-controller',
      );
      expect(JSON.stringify(fields)).not.toContain('"f:replicas"');
    });
    expect(await replicasOf('scaled')).toBeGreaterThan(1);
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments/posthorn-delivery-scaled`;
    await plane.request('PATCH', `${path}/scale`, { spec: { replicas: 8 } }, 'application/merge-patch+json');
    await plane.request('DELETE', `/api/v1/namespaces/${namespace}/services/posthorn-delivery-scaled`);
    await eventually(async () => expect(await owned('Service', 'scaled')).not.toBeNull());
    expect(await replicasOf('scaled')).toBe(8);
    await apply('scaled', { replicas: 1 });
    await eventually(async () => {
      expect(await owned('HorizontalPodAutoscaler', 'scaled')).toBeNull();
      expect(await replicasOf('scaled')).toBe(1);
    });
  });

  test('the number of pods is left to KEDA where that is installed', async () => {
    const autoscaling = { mode: 'keda', min: 1, max: 9 } as const;
    await apply('scaled', { autoscaling });
    await shows('scaled', 'Accepted', 'False KedaNotFound');
    await plane.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', scaledObjects);
    await shows('scaled', 'Accepted', 'True Accepted');
    expect((await owned('ScaledObject', 'scaled'))?.['spec']).toMatchObject({
      minReplicaCount: 1,
      triggers: [{ type: 'metrics-api', metadata: { valueLocation: 'posthorn_backlog_messages', targetValue: '1000' } }],
    });
  });
});

describe('a deleted pool', () => {
  const podsOf = async (name: string) =>
    (await objects.list(pods, { namespace, labelSelector: `posthorn.dev/delivery-pool=${name}` })).items;
  /** A pod that does not end, as one that is finishing what it has begun. */
  const hold = async (name: string, finalizers: string[]): Promise<void> => {
    for (const { name: each } of (await podsOf(name)).slice(0, 1)) {
      const path = `/api/v1/namespaces/${namespace}/pods/${each}`;
      await plane.request('PATCH', path, { metadata: { finalizers } }, 'application/merge-patch+json');
    }
  };

  test('a deleted pool waits for its pods, then goes with all its objects', async () => {
    await hold('plain', ['test.example/busy']);
    await store.delete('DeliveryPool', { namespace, name: 'plain' });
    await shows('plain', 'Ready', 'False Draining');
    expect(await measured('plain')).toEqual({});
    await eventually(async () => expect(await podsOf('plain')).toHaveLength(1));
    expect(await replicasOf('plain')).toBe(0);
    await eventually(async () => {
      const ready = (await pool('plain')).status?.conditions?.find(({ type }) => type === 'Ready');
      expect(ready?.message).toContain('1 worker finishes');
    });
    await hold('plain', []);
    await eventually(async () => expect(pool('plain')).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' }));
    await eventually(async () => {
      for (const kind of ['Deployment', 'Service', 'PodDisruptionBudget', 'ServiceAccount'] as const)
        expect(await owned(kind, 'plain')).toBeNull();
    });
  });

  test('a deleted pool does not wait longer than its grace period and half a minute', async () => {
    await eventually(async () => expect(await podsOf('scaled')).not.toEqual([]));
    await hold('scaled', ['test.example/busy']);
    await store.delete('DeliveryPool', { namespace, name: 'scaled' });
    await shows('scaled', 'Ready', 'False Draining');
    world.aheadMs = 66_000;
    await eventually(async () => expect(pool('scaled')).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' }));
    await hold('scaled', []);
  });

  // The last test: the namespace is no more.
  test('a pool loses its finalizer at once when its namespace is deleted, although its pods do not end', async () => {
    world.aheadMs = 0;
    await apply('deserted', { replicas: 1 });
    await eventually(async () => expect(await podsOf('deserted')).toHaveLength(1));
    await hold('deserted', ['test.example/busy']);
    await plane.request('DELETE', `/api/v1/namespaces/${namespace}`);
    await eventually(async () => {
      const { items } = await store.list('DeliveryPool', { namespace });
      expect(items.flatMap(({ metadata }) => metadata.finalizers ?? [])).toEqual([]);
    });
    await hold('deserted', []);
    await eventually(
      () => expect(store.get('Namespace', { name: namespace })).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' }),
      60_000,
    );
  }, 150_000);
});
