import { expect } from '@jest/globals';
import { Registry } from 'prom-client';
import { checkWorkerEnvironment } from '../../src/cmd/worker-environment.ts';
import { clusterKinds, type OwnedKind } from '../../src/compile/delivery-pool/cluster-kinds.ts';
import type { Backlog } from '../../src/controllers/delivery-pool/backlog-scaler.ts';
import { PoolMetrics } from '../../src/controllers/delivery-pool/pool-metrics.ts';
import { runDeliveryPools } from '../../src/controllers/delivery-pool/run-delivery-pools.ts';
import type { Clock } from '../../src/core/clock.ts';
import type { ObjectOf, SpecInputOf } from '../../src/resources/kinds.ts';
import { ControllerMetrics } from '../../src/runtime/controller-metrics.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { ResourceCache } from '../../src/store/cache.ts';
import type { ClusterKind, ClusterObject } from '../../src/store/cluster-objects.ts';
import type { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { KubernetesObjects } from '../../src/store/kubernetes/kubernetes-objects.ts';
import { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import { createStoreMetrics } from '../../src/store/metrics.ts';
import { Reflector } from '../../src/store/reflector.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { controllerApi } from './controller-api.ts';
import { eventually } from './eventually.ts';
import { kubernetesApi } from './kubernetes-api.ts';
import { silentLogger } from './logger.ts';

export const namespace = 'posthorn-system';
const encryptionKeys = `k1:${Buffer.alloc(32, 7).toString('base64')}`;
export const pods = { apiVersion: 'v1', kind: 'Pod', plural: 'pods' };
export const secrets = { apiVersion: 'v1', kind: 'Secret', plural: 'secrets' };
export const configMaps = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' };
/** What the Secret of all workers holds. */
export const workerSecret = { stringData: { POSTHORN_ENCRYPTION_KEYS: encryptionKeys, POSTHORN_REDIS_URL: 'redis://redis:6380' } };

/** DeliveryPools of a control plane without nodes, as the controller of the chart reconciles them with its own rights. */
export class PoolWorld {
  readonly plane: ControlPlane;
  readonly store: KubernetesStore;
  /** As the administrator. */
  readonly objects: KubernetesObjects;
  backlog: Backlog | null = { messages: 0, oldestAgeSeconds: 0 };
  aheadMs = 0;
  /** The pools as the controller sees them. */
  readonly pools = new ResourceCache('DeliveryPool', { logger: silentLogger });
  readonly #admin: KubernetesApi;
  readonly #controller: KubernetesApi;
  readonly #metrics = new Registry();
  readonly #ending = new AbortController();
  readonly #running: Promise<unknown>;

  private constructor(plane: ControlPlane, admin: KubernetesApi, controller: KubernetesApi) {
    this.plane = plane;
    this.#admin = admin;
    this.#controller = controller;
    this.store = new KubernetesStore({ api: admin, clock: systemClock });
    this.objects = new KubernetesObjects({ api: admin, clock: systemClock });
    this.#running = this.#start();
  }

  static async start(): Promise<PoolWorld> {
    const plane = await startControlPlane({ controllerManager: true, crds: true });
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    await plane.request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } });
    for (const [plural, kind, name, fields] of [
      ['secrets', 'Secret', 'posthorn', workerSecret],
      ['configmaps', 'ConfigMap', 'settings', { data: { POSTHORN_LOG_LEVEL: 'warn' } }],
      ['configmaps', 'ConfigMap', 'egress-ca', { data: { 'ca.pem': 'one' } }],
    ] as const)
      await plane.request('POST', `/api/v1/namespaces/${namespace}/${plural}`, { apiVersion: 'v1', kind, metadata: { name }, ...fields });
    return new PoolWorld(plane, kubernetesApi(plane), await controllerApi(plane));
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#running;
    await Promise.all([this.#admin.close(), this.#controller.close()]);
    await this.plane.stop();
  }

  #start(): Promise<unknown> {
    const { signal } = this.#ending;
    const clock: Clock = { ...systemClock, now: () => systemClock.now() + this.aheadMs };
    const own = new KubernetesStore({ api: this.#controller, clock: systemClock });
    const storeMetrics = createStoreMetrics(new Registry());
    const organizations = new ResourceCache('Organization', { logger: silentLogger });
    const namespaces = new ResourceCache('Namespace', { logger: silentLogger });
    const reflected = { store: own, clock, logger: silentLogger, metrics: storeMetrics };
    return Promise.all([
      new Reflector({ ...reflected, cache: organizations }).run(signal),
      new Reflector({ ...reflected, cache: namespaces }).run(signal),
      runDeliveryPools(
        {
          store: own,
          objects: new KubernetesObjects({ api: this.#controller, clock: systemClock }),
          namespace,
          cache: this.pools,
          organizations,
          namespaces,
          defaults: {
            image: 'posthorn:test',
            imagePullSecrets: ['registry'],
            configMaps: ['settings'],
            secrets: ['posthorn'],
            user: 1000,
            metricsFrom: [],
            mounts: [{ kind: 'ConfigMap', name: 'egress-ca', path: '/etc/posthorn/egress' }],
          },
          checkEnvironment: checkWorkerEnvironment,
          backlog: async () => this.backlog,
          poolMetrics: new PoolMetrics(this.#metrics),
          redisPorts: () => [7001],
          clock,
          logger: silentLogger,
          recorder: { record: () => {} },
          metrics: new ControllerMetrics(new Registry()),
          storeMetrics,
        },
        signal,
      ),
    ]);
  }

  async applyObject(kind: ClusterKind, name: string, fields: Record<string, unknown>): Promise<void> {
    const there = await this.objects.get(kind, { namespace, name });
    await this.objects.apply(kind, { metadata: { namespace, name }, ...fields }, { manager: 'test', uid: there?.metadata.uid ?? null });
  }

  apply(name: string, spec: SpecInputOf<'DeliveryPool'>): Promise<ObjectOf<'DeliveryPool'>> {
    return this.store.apply({ kind: 'DeliveryPool', metadata: { namespace, name }, spec }, { manager: 'test', force: true });
  }

  pool(name: string): Promise<ObjectOf<'DeliveryPool'>> {
    return this.store.get('DeliveryPool', { namespace, name });
  }

  owned(kind: OwnedKind, name: string): Promise<ClusterObject | null> {
    return this.objects.get(clusterKinds[kind], { namespace, name: `posthorn-delivery-${name}` });
  }

  /** The condition as `status reason` once it speaks of the newest generation. */
  shows(name: string, type: string, text: string): Promise<ObjectOf<'DeliveryPool'>> {
    return eventually(async () => {
      const object = await this.pool(name);
      const condition = object.status?.conditions?.find((each) => each.type === type);
      expect(`${condition?.status} ${condition?.reason}`).toBe(text);
      expect(condition?.observedGeneration).toBe(object.metadata.generation);
      return object;
    });
  }

  /** The pod status of a cluster with nodes. */
  async makePodsReady(name: string): Promise<void> {
    const { items } = await this.objects.list(pods, { namespace, labelSelector: `posthorn.dev/delivery-pool=${name}` });
    const status = {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }],
    };
    for (const { name: each } of items) {
      const path = `/api/v1/namespaces/${namespace}/pods/${each}/status`;
      await this.plane.request('PATCH', path, { status }, 'application/merge-patch+json');
    }
  }

  /** The metrics of a pool. */
  async measured(pool: string): Promise<Record<string, number>> {
    const families = await Promise.all(
      ['workers', 'available', 'accepted', 'backlog_messages'].map((name) => this.#metrics.getSingleMetric(`posthorn_pool_${name}`)?.get()),
    );
    return Object.fromEntries(
      families.flatMap((family) =>
        (family?.values ?? []).flatMap(({ labels, value }) =>
          labels['pool'] === pool ? [[labels['state'] ?? family?.name.replace('posthorn_pool_', ''), value]] : [],
        ),
      ),
    );
  }
}
