import { BacklogReader } from '../controllers/delivery-pool/backlog-reader.ts';
import type { PoolEgressSource } from '../controllers/delivery-pool/pool-egress.ts';
import type { PoolMetrics } from '../controllers/delivery-pool/pool-metrics.ts';
import { reportPools } from '../controllers/delivery-pool/report-pools.ts';
import { runDeliveryPools } from '../controllers/delivery-pool/run-delivery-pools.ts';
import type { EventRecorder } from '../controllers/event-recorder.ts';
import { CronRuns } from '../data/cron/cron-runs.ts';
import { DueArchives } from '../data/history/due-archives.ts';
import { PoolReports } from '../data/membership/pool-reports.ts';
import { RedisDeliveryQueue } from '../data/queue/redis-delivery-queue.ts';
import { knownServers } from '../redis/connection.ts';
import type { ControllerMetrics } from '../runtime/controller-metrics.ts';
import type { ResourceCache } from '../store/cache.ts';
import type { KubernetesObjects } from '../store/kubernetes/kubernetes-objects.ts';
import type { StoreMetrics } from '../store/metrics.ts';
import { leaseNamespace } from './lease-namespace.ts';
import type { RedisLink } from './redis-link.ts';
import type { OpenedStore } from './resource-store.ts';
import type { RoleContext } from './role-process.ts';
import { checkWorkerEnvironment } from './worker-environment.ts';

export interface PoolLeading {
  context: RoleContext;
  opened: Pick<OpenedStore, 'store'>;
  /** Null: resources do not live in Kubernetes. */
  objects: KubernetesObjects | null;
  /** For the pools; null there, too. */
  cache: ResourceCache<'DeliveryPool'> | null;
  poolEgress: PoolEgressSource | null;
  link: RedisLink;
  organizations: ResourceCache<'Organization'>;
  namespaces: ResourceCache<'Namespace'>;
  shards: number;
  recorder: EventRecorder;
  metrics: ControllerMetrics;
  storeMetrics: StoreMetrics;
  poolMetrics: PoolMetrics;
}

/** Runs the DeliveryPools of the controller's namespace until the signal aborts; none where resources do not live in Kubernetes. */
export async function leadDeliveryPools(leading: PoolLeading, signal: AbortSignal): Promise<void> {
  const { context, opened, objects, cache, poolEgress, link, shards } = leading;
  const { config, clock, logger } = context;
  if (objects === null || cache === null) return;
  const prefix = config.redisKeyPrefix;
  const queuesOf = (pool: string) =>
    Array.from({ length: shards }, (_, shard) => new RedisDeliveryQueue({ redis: link.main, prefix, shard, pool }));
  const backlog = new BacklogReader({
    queuesOf,
    cronRunsOf: (pool) => new CronRuns({ redis: link.main, prefix, pool }),
    archivesOf: (pool) => new DueArchives({ redis: link.main, prefix, shards, pool }),
    clock,
  });
  const namespace = leaseNamespace(config);
  const reports = new PoolReports({ redis: link.main, prefix });
  const reporting = reportPools({ cache, namespace, reports, clock, logger }, signal);
  const running = runDeliveryPools(
    {
      ...leading,
      store: opened.store,
      objects,
      cache,
      namespace,
      defaults: config.pools,
      checkEnvironment: checkWorkerEnvironment,
      egressSource: poolEgress ?? undefined,
      backlog: (pool) => backlog.read(pool),
      redisPorts: () => knownServers(link.main).map(({ port }) => port),
      clock,
      logger,
    },
    signal,
  );
  await Promise.all([running, reporting]);
}
