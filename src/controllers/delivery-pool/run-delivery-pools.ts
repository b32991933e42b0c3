import { clusterKinds } from '../../compile/delivery-pool/cluster-kinds.ts';
import { poolLabel } from '../../compile/delivery-pool/pool-names.ts';
import { canonicalJson } from '../../core/canonical-json.ts';
import { defaultPool } from '../../core/default-pool.ts';
import type { Logger } from '../../core/logger.ts';
import { kinds } from '../../resources/kinds.ts';
import type { ControllerMetrics } from '../../runtime/controller-metrics.ts';
import { formatKey } from '../../runtime/object-key.ts';
import { runController } from '../../runtime/run-controller.ts';
import { WorkQueue } from '../../runtime/work-queue.ts';
import type { ResourceCache } from '../../store/cache.ts';
import type { StoreMetrics } from '../../store/metrics.ts';
import { Reflector } from '../../store/reflector.ts';
import type { ResourceStore } from '../../store/store.ts';
import type { EventRecorder } from '../event-recorder.ts';
import { followObjects } from '../follow-objects.ts';
import { isEnding, isLive } from '../held-ids.ts';
import { servingPool } from '../organization/organization-pool.ts';
import { StatusWriter } from '../status-writer.ts';
import { type DeliveryPoolOptions, DeliveryPoolReconciler } from './delivery-pool-reconciler.ts';
import { configurationKinds } from './pool-environment.ts';
import { untilFilled } from './until-filled.ts';

export interface RunDeliveryPoolsOptions extends Omit<DeliveryPoolOptions, 'store' | 'furtherEgress' | 'serves' | 'isNamespaceEnding'> {
  store: ResourceStore;
  /** Cache of the namespace; it is filled here. */
  cache: ResourceCache<'DeliveryPool'>;
  /** Where pools are: the namespace of the controller. */
  namespace: string;
  /** Running. */
  organizations: ResourceCache<'Organization'>;
  /** Running. */
  namespaces: ResourceCache<'Namespace'>;
  /** TCP ports of the servers of Redis that are known now. */
  redisPorts(): readonly number[];
  recorder: EventRecorder;
  logger: Logger;
  metrics: ControllerMetrics;
  storeMetrics: StoreMetrics;
}

const deadlineMs = 60_000;

/** Runs the DeliveryPools of a cluster until the signal aborts. Standalone has none. */
export async function runDeliveryPools(options: RunDeliveryPoolsOptions, signal: AbortSignal): Promise<void> {
  const { store, objects, cache, namespace, organizations, namespaces, clock, logger, metrics, recorder } = options;
  const reflector = new Reflector({ store, cache, clock, logger, metrics: options.storeMetrics, namespace });
  const status = new StatusWriter({ store, clock, recorder });
  const furtherEgress = () => ({
    ports: options.redisPorts(),
    cidrs: organizations.list().flatMap(({ spec }) => spec.egress?.allowedCidrs ?? []),
    hasHosts: organizations.list().some(({ spec }) => (spec.egress?.allowedHosts ?? []).length > 0),
  });
  const serves = (pool: string): boolean =>
    organizations.list().some((organization) => isLive(organization) && servingPool(organization, cache) === pool);
  const isNamespaceEnding = (): boolean => isEnding(namespaces, namespace);
  const reconciler = new DeliveryPoolReconciler({ ...options, furtherEgress, serves, isNamespaceEnding, status });
  const queue = new WorkQueue({ clock });
  const addAll = (): void => {
    for (const { metadata } of cache.list(namespace)) queue.add(formatKey(metadata));
  };
  /** It may be missed although it was never there. */
  const addDefault = (): void => queue.add(formatKey({ namespace, name: defaultPool }));
  const ends = [
    cache.onChange((key, { before, after }) => {
      if (!status.isOwnWrite(after)) queue.add(formatKey(key));
      if (before === undefined || after === undefined || isLive(before) !== isLive(after)) addDefault();
    }),
    namespaces.onChange(({ name }) => {
      if (name === namespace && isNamespaceEnding()) addAll();
    }),
    organizations.onChange((_, { before, after }) => {
      const servedBy = (object: typeof after): string | null =>
        object !== undefined && isLive(object) ? (object.spec.deliveryPool ?? defaultPool) : null;
      if (servedBy(before) !== servedBy(after)) addDefault();
      if (canonicalJson(before?.spec.egress ?? null) !== canonicalJson(after?.spec.egress ?? null)) addAll();
    }),
  ];
  const follow = { objects, clock, logger };
  const owned = Object.values(clusterKinds).map((kind) =>
    followObjects(
      {
        ...follow,
        kind,
        query: { namespace, labelSelector: poolLabel },
        onChange: ({ labels }) => {
          const name = labels?.[poolLabel];
          if (name !== undefined) queue.add(formatKey({ namespace, name }));
        },
      },
      signal,
    ),
  );
  const configuration = Object.values(configurationKinds).map((kind) =>
    followObjects({ ...follow, kind, query: { namespace }, onChange: addAll }, signal),
  );
  const reconcile = reconciler.reconcile.bind(reconciler);
  const control = async (): Promise<void> => {
    // Without the organizations the NetworkPolicy would be too narrow; without the pools each of them would seem to be missing.
    await untilFilled([organizations, cache], clock, signal);
    addDefault();
    await runController(
      { kind: 'DeliveryPool', queue, workers: kinds.DeliveryPool.workers, deadlineMs, reconcile, clock, logger, metrics },
      signal,
    );
  };
  await Promise.all([reflector.run(signal), ...owned, ...configuration, control()]);
  for (const end of ends) end();
}
