import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { CircuitFeed } from '../../data/circuit-feed.ts';
import type { Circuits } from '../../data/circuits.ts';
import { runController } from '../../runtime/controller.ts';
import type { ControllerMetrics } from '../../runtime/controller-metrics.ts';
import { formatKey } from '../../runtime/object-key.ts';
import { WorkQueue } from '../../runtime/work-queue.ts';
import type { ResourceCache } from '../../store/cache.ts';
import type { ResourceStore } from '../../store/store.ts';
import { type ControllerCaches, indexes } from '../controller-caches.ts';
import type { EventRecorder } from '../event-recorder.ts';
import { idOf } from '../references.ts';
import { BrokenCircuits } from './broken-circuits.ts';
import { type HealthKind, HealthReconciler } from './health-reconciler.ts';

export interface HealthOptions {
  caches: ControllerCaches;
  circuits: Pick<Circuits, 'broken'>;
  feed: Pick<CircuitFeed, 'head' | 'after' | 'close'>;
  store: Pick<ResourceStore, 'applyStatus'>;
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  metrics: ControllerMetrics;
}

const compareIntervalMs = 600_000;
const retryMs = 2000;
const deadlineMs = 30_000;
/** From so many waiting writes on they are spread: ten a second, those of routes and those of destinations. */
const calmDepth = 25;
const spreadMs = 200;

/** Brings the state of the circuits into the status of routes and destinations, until the signal aborts. */
export async function runHealth(options: HealthOptions, signal: AbortSignal): Promise<void> {
  const { caches, clock, logger, metrics } = options;
  const broken = new BrokenCircuits();
  const common = { ...options, circuits: broken };
  const routes = new HealthReconciler({ ...common, cache: caches.Route });
  const destinations = new HealthReconciler({ ...common, cache: caches.Destination });
  const queues = { Route: new WorkQueue({ clock }), Destination: new WorkQueue({ clock }) };
  const look = (ids: Iterable<string>): void => {
    for (const id of ids) {
      for (const { metadata } of caches.Route.byIndex(indexes.id, id)) queues.Route.add(formatKey(metadata));
      for (const { metadata } of caches.Destination.byIndex(indexes.id, id)) queues.Destination.add(formatKey(metadata));
    }
  };
  const controller = (kind: keyof typeof queues, reconciler: { reconcile: typeof routes.reconcile }) =>
    runController(
      {
        kind: `${kind}Health`,
        queue: queues[kind],
        workers: 1,
        deadlineMs,
        reconcile: async (key) => {
          if (queues[kind].depth > calmDepth) await clock.sleep(spreadMs, signal);
          return reconciler.reconcile(key);
        },
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
    follow({ ...options, broken, look }, signal),
  ]);
}

/** Everything on leadership and every ten minutes, transitions in between. */
async function follow(
  {
    caches,
    circuits,
    feed,
    clock,
    logger,
    broken,
    look,
  }: HealthOptions & { broken: BrokenCircuits; look: (ids: Iterable<string>) => void },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      let position = await feed.head();
      look(broken.replace(await circuits.broken()));
      look(notClosed('Route', caches.Route));
      look(notClosed('Destination', caches.Destination));
      const endMs = clock.now() + compareIntervalMs;
      for (let isBehind = false; !isBehind && !signal.aborted && clock.now() < endMs; ) {
        const read = await feed.after(position);
        position = read.position;
        isBehind = read.isBehind;
        look(read.transitions.flatMap((transition) => broken.apply(transition)));
      }
    } catch (error) {
      if (signal.aborted) return;
      logger.debug({ err: error }, 'the circuits cannot be read; trying again');
      await clock.sleep(retryMs * (0.8 + Math.random() * 0.4), signal);
    }
  }
}

/** Ids of the objects whose status says so. */
function notClosed<K extends HealthKind>(kind: K, cache: ResourceCache<K>): string[] {
  return cache
    .list()
    .filter(({ status }) => (status?.circuit?.state ?? 'closed') !== 'closed')
    .map((object) => idOf(kind, object));
}
