import type { Clock } from '../core/clock.ts';
import { isPosthornError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { Key } from '../store/store.ts';
import type { ControllerMetrics, ReconcileOutcome } from './controller-metrics.ts';
import { parseKey } from './object-key.ts';
import { reconcileTurn } from './reconcile-turns.ts';
import type { WorkQueue } from './work-queue.ts';

export interface ReconcileResult {
  /** Look again after this many milliseconds although nothing changes. */
  requeueAfterMs?: number;
}

export interface ControllerOptions {
  /** Name in logs and metrics. */
  kind: string;
  queue: WorkQueue;
  /** How many objects are worked on at a time. */
  workers: number;
  /** After this time the reconcile's signal aborts. The key stays taken until the reconcile has ended. */
  deadlineMs: number;
  /**
   * Reconciles the actual state with the object, from what exists now; it does not learn what changed. CONFLICT (something
   * else wrote meanwhile) and UNAVAILABLE are expected and retried quietly; any other error is retried and logged.
   */
  reconcile(key: Key, signal: AbortSignal): Promise<ReconcileResult>;
  clock: Clock;
  logger: Logger;
  metrics: ControllerMetrics;
}

/** How often "unavailable" is worth a log line; thousands of objects notice the same outage. */
const outageLogIntervalMs = 10_000;

/** Works on the queue's keys until the signal aborts, then resolves when the reconciles under way have ended. */
export async function runController(options: ControllerOptions, signal: AbortSignal): Promise<void> {
  const { queue, workers, kind, metrics } = options;
  metrics.addKind(kind, () => queue.depth);
  const underWay = new Set<AbortController>();
  const stop = (): void => {
    void queue.shutdown({ drain: false });
    for (const reconcile of underWay) reconcile.abort(signal.reason);
  };
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  const worker = makeWorker(options, underWay, signal);
  await Promise.all(Array.from({ length: workers }, worker));
  signal.removeEventListener('abort', stop);
}

function makeWorker(options: ControllerOptions, underWay: Set<AbortController>, stopped: AbortSignal): () => Promise<void> {
  const { queue, clock, kind, metrics, reconcile, deadlineMs } = options;
  const settle = settler(options);
  return async () => {
    for (;;) {
      const rest = reconcileTurn();
      if (rest !== null) await rest;
      const key = await queue.get();
      if (key === undefined) return;
      if (stopped.aborted) {
        queue.done(key);
        return;
      }
      const startedAt = clock.now();
      const deadline = new AbortController();
      underWay.add(deadline);
      const cancel = clock.after(deadlineMs, () => deadline.abort(new Error(`not done after ${deadlineMs} ms`)));
      let outcome: ReconcileOutcome;
      try {
        const result = await reconcile(parseKey(key), deadline.signal);
        queue.forget(key);
        if (result.requeueAfterMs !== undefined) queue.addAfter(key, result.requeueAfterMs);
        outcome = result.requeueAfterMs === undefined ? 'success' : 'requeued';
      } catch (error) {
        if (stopped.aborted) return;
        outcome = settle(key, error);
      } finally {
        cancel();
        underWay.delete(deadline);
        queue.done(key);
      }
      metrics.observe(kind, outcome, clock.now() - startedAt);
    }
  };
}

/** Decides when a key whose reconcile failed is tried again, and what is logged. */
function settler({ queue, clock, logger, kind }: ControllerOptions): (key: string, error: unknown) => ReconcileOutcome {
  let outageLoggedAt = Number.NEGATIVE_INFINITY;
  return (key, error) => {
    if (isPosthornError(error, 'UNAVAILABLE')) {
      if (error.retryAfterSeconds === undefined) queue.addRateLimited(key);
      else queue.addAfter(key, error.retryAfterSeconds * 1000);
      if (clock.now() - outageLoggedAt >= outageLogIntervalMs) {
        outageLoggedAt = clock.now();
        logger.warn({ kind, key, err: error }, 'reconcile failed because a dependency is unavailable; retrying');
      }
      return 'unavailable';
    }
    queue.addRateLimited(key);
    if (isPosthornError(error, 'CONFLICT')) {
      logger.debug({ kind, key }, 'write conflict; retrying');
      return 'conflict';
    }
    logger.error({ kind, key, err: error }, 'reconcile failed; retrying');
    return 'error';
  };
}
