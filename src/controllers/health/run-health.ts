import type { Clock } from '../../core/clock.ts';
import { requestsAnotherId } from '../../core/ids.ts';
import type { Logger } from '../../core/logger.ts';
import type { CircuitFeed } from '../../data/queue/circuit-feed.ts';
import type { Circuits } from '../../data/queue/circuits.ts';
import { definitionOf, type ObjectOf, type PosthornObject } from '../../resources/kinds.ts';
import type { ControllerMetrics } from '../../runtime/controller-metrics.ts';
import { formatKey } from '../../runtime/object-key.ts';
import { runController } from '../../runtime/run-controller.ts';
import { WorkQueue } from '../../runtime/work-queue.ts';
import type { ResourceCache } from '../../store/cache.ts';
import type { ResourceStore } from '../../store/store.ts';
import { type ControllerCaches, indexes } from '../controller-caches.ts';
import type { EventRecorder } from '../event-recorder.ts';
import { idOf, isLive, mayHaveItsId } from '../held-ids.ts';
import { BrokenCircuits, type CircuitTarget } from './broken-circuits.ts';
import { circuitDetail } from './circuit-detail.ts';
import { type HealthKind, HealthReconciler } from './health-reconciler.ts';
import { WritePace } from './write-pace.ts';

export interface HealthOptions {
  caches: ControllerCaches;
  circuits: Pick<Circuits, 'broken' | 'ofTargets'>;
  feed: Pick<CircuitFeed, 'head' | 'after' | 'close'>;
  store: Pick<ResourceStore, 'applyStatus'>;
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  metrics: ControllerMetrics;
}

const healthKinds: readonly HealthKind[] = ['Route', 'Destination', 'WebhookEndpoint'];
/** A circuit does not outlive an object of them. */
const endKinds = [...healthKinds, 'NotificationChannel'] as const;
const compareIntervalMs = 600_000;
const retryMs = 2000;
const deadlineMs = 30_000;
/** A destination sums up many routes, and is written before them unless they have waited longer than this. */
const yieldsMs = { Destination: 0, Route: 1000, WebhookEndpoint: 1000 };

/** Brings the state of the circuits into the status of routes, destinations and webhook endpoints, until the signal aborts. */
export async function runHealth(options: HealthOptions, signal: AbortSignal): Promise<void> {
  const { caches, clock, logger, metrics } = options;
  const broken = new BrokenCircuits((id) =>
    endKinds.some((kind) => id.startsWith(definitionOf(kind).idPrefix) && caches[kind].getById(id) === undefined),
  );
  const pace = new WritePace(clock);
  const common = <K extends HealthKind>(kind: K, cache: ResourceCache<K>) => ({
    ...options,
    cache,
    circuits: broken,
    // An object without a claim has an id that no other one can have published.
    ownsCircuits: (object: ObjectOf<K>) =>
      !requestsAnotherId(definitionOf(kind).idPrefix, object.metadata) || mayHaveItsId(caches, cache, object),
    detail: (object: PosthornObject<HealthKind>, target: CircuitTarget) => circuitDetail(options, kind, object, target),
    turn: () => pace.turn(yieldsMs[kind], signal),
  });
  const routes = new HealthReconciler(common('Route', caches.Route));
  const destinations = new HealthReconciler(common('Destination', caches.Destination));
  const endpoints = new HealthReconciler(common('WebhookEndpoint', caches.WebhookEndpoint));
  const queues = { Route: new WorkQueue({ clock }), Destination: new WorkQueue({ clock }), WebhookEndpoint: new WorkQueue({ clock }) };
  const recheck = (ids: Iterable<string>): void => {
    for (const id of ids)
      for (const kind of healthKinds)
        for (const { metadata } of caches[kind].byIndex(indexes.id, id)) queues[kind].add(formatKey(metadata));
  };
  // Thousands may claim one id.
  const recheckOldest = (id: string, exceptUid: string | undefined): void => {
    for (const kind of healthKinds)
      for (const { metadata } of caches[kind].oldestWithId(id, exceptUid)) queues[kind].add(formatKey(metadata));
  };
  const unfollow = endKinds.map((kind) =>
    caches[kind].onChange((_, { before, after }) => {
      if (before === undefined) return;
      const id = idOf(kind, before);
      if (after !== undefined && idOf(kind, after) === id && isLive(after) === isLive(before)) return;
      // An id goes to the next one of the objects that claim it, and its circuits with it.
      if (caches[kind].getById(id) === undefined) recheck(broken.forget(id));
      else recheckOldest(id, before.metadata.uid);
      if (after !== undefined) {
        if (kind !== 'NotificationChannel') queues[kind].add(formatKey(after.metadata));
        recheckOldest(idOf(kind, after), after.metadata.uid);
      }
      metrics.showCircuits(broken.counts());
    }),
  );
  const controller = (kind: keyof typeof queues, reconciler: { reconcile: typeof routes.reconcile }) =>
    runController(
      {
        kind: `${kind}Health`,
        queue: queues[kind],
        workers: 1,
        deadlineMs,
        reconcile: (key) => reconciler.reconcile(key),
        clock,
        logger,
        metrics,
      },
      signal,
    );
  const stopReading = (): void => options.feed.close();
  if (signal.aborted) return;
  signal.addEventListener('abort', stopReading, { once: true });
  await Promise.all([
    controller('Route', { reconcile: (key) => routes.reconcile(key) }),
    controller('Destination', { reconcile: (key) => destinations.reconcile(key) }),
    controller('WebhookEndpoint', { reconcile: (key) => endpoints.reconcile(key) }),
    follow({ ...options, broken, recheck }, signal),
  ]);
  for (const stop of unfollow) stop();
  metrics.showCircuits(null);
}

/** Everything on leadership and every ten minutes, transitions in between. */
async function follow(
  {
    caches,
    circuits,
    feed,
    clock,
    logger,
    metrics,
    broken,
    recheck,
  }: HealthOptions & { broken: BrokenCircuits; recheck: (ids: Iterable<string>) => void },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      let position = await feed.head();
      recheck(broken.replace(await circuits.broken()));
      metrics.showCircuits(broken.counts());
      recheck(notClosed('Route', caches.Route));
      recheck(notClosed('Destination', caches.Destination));
      recheck(notClosed('WebhookEndpoint', caches.WebhookEndpoint));
      const endMs = clock.now() + compareIntervalMs;
      for (let isBehind = false; !isBehind && !signal.aborted && clock.now() < endMs; ) {
        const read = await feed.after(position);
        position = read.position;
        isBehind = read.isBehind;
        recheck(read.transitions.flatMap((transition) => broken.apply(transition)));
        metrics.showCircuits(broken.counts());
      }
    } catch (error) {
      if (signal.aborted) return;
      logger.debug({ err: error }, 'the circuits could not be read; retrying');
      await clock.sleep(retryMs * (0.8 + Math.random() * 0.4), signal);
    }
  }
}

/** Ids of the objects with this status. */
function notClosed<K extends HealthKind>(kind: K, cache: ResourceCache<K>): string[] {
  return cache
    .list()
    .filter(({ status }) => (status?.circuit?.state ?? 'closed') !== 'closed')
    .map((object) => idOf(kind, object));
}
