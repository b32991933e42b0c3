import type { Clock } from '../../core/clock.ts';
import { isPosthornError } from '../../core/errors.ts';
import type { CronRuns } from '../../data/cron/cron-runs.ts';
import type { DueArchives } from '../../data/history/due-archives.ts';
import { sumQueueStats } from '../../data/queue/queue-stats.ts';
import type { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import type { Backlog } from './backlog-scaler.ts';

/** Several triggers of a pool share one read. */
const freshMs = 5000;

export interface BacklogReaderOptions {
  queuesOf: (pool: string) => readonly Pick<RedisDeliveryQueue, 'figures'>[];
  cronRunsOf: (pool: string) => Pick<CronRuns, 'organizationsWaiting'>;
  archivesOf: (pool: string) => Pick<DueArchives, 'organizationsWaiting'>;
  clock: Clock;
}

/** What waits for the workers of a pool: messages in all shards, and one more of each organization whose cron jobs wait, or whose archive is due. */
export class BacklogReader {
  readonly #options: BacklogReaderOptions;
  readonly #last = new Map<string, { atMs: number; backlog: Promise<Backlog | null> }>();

  constructor(options: BacklogReaderOptions) {
    this.#options = options;
  }

  /** At most 5 seconds old; null without Redis. */
  read(pool: string): Promise<Backlog | null> {
    const nowMs = this.#options.clock.now();
    for (const [name, { atMs }] of this.#last) if (nowMs - atMs >= freshMs) this.#last.delete(name);
    const last = this.#last.get(pool) ?? { atMs: nowMs, backlog: this.#sample(pool, nowMs) };
    this.#last.set(pool, last);
    return last.backlog;
  }

  async #sample(pool: string, nowMs: number): Promise<Backlog | null> {
    const { queuesOf, cronRunsOf, archivesOf } = this.#options;
    try {
      const [figures, runs, archives] = await Promise.all([
        Promise.all(queuesOf(pool).map((queue) => queue.figures())),
        cronRunsOf(pool).organizationsWaiting(),
        archivesOf(pool).organizationsWaiting(),
      ]);
      const { backlog, oldestUnreadAtMs } = sumQueueStats(figures);
      const oldestAgeSeconds = oldestUnreadAtMs === null ? 0 : Math.max(0, Math.floor((nowMs - oldestUnreadAtMs) / 1000));
      return { messages: backlog + runs + archives, oldestAgeSeconds };
    } catch (error) {
      if (isPosthornError(error, 'UNAVAILABLE')) return null;
      throw error;
    }
  }
}
