import type { Clock } from '../../core/clock.ts';
import { isPosthornError } from '../../core/errors.ts';
import type { DeliveryQueue } from '../../data/delivery-queue.ts';
import { figuresOfAll } from '../../data/queue-figures.ts';
import type { Backlog } from './backlog-scaler.ts';

/** Several reasons to look at a pool share one look. */
const freshMs = 5000;

/** What waits for the workers of a pool in all shards. */
export class BacklogReader {
  readonly #queuesOf: (pool: string) => readonly Pick<DeliveryQueue, 'figures'>[];
  readonly #clock: Clock;
  readonly #last = new Map<string, { atMs: number; backlog: Promise<Backlog | null> }>();

  constructor({ queuesOf, clock }: { queuesOf: (pool: string) => readonly Pick<DeliveryQueue, 'figures'>[]; clock: Clock }) {
    this.#queuesOf = queuesOf;
    this.#clock = clock;
  }

  /** At most 5 seconds old; null without Redis. */
  read(pool: string): Promise<Backlog | null> {
    const nowMs = this.#clock.now();
    for (const [name, { atMs }] of this.#last) if (nowMs - atMs >= freshMs) this.#last.delete(name);
    const last = this.#last.get(pool) ?? { atMs: nowMs, backlog: this.#look(pool, nowMs) };
    this.#last.set(pool, last);
    return last.backlog;
  }

  async #look(pool: string, nowMs: number): Promise<Backlog | null> {
    try {
      const { backlog, oldestUnreadAtMs } = figuresOfAll(await Promise.all(this.#queuesOf(pool).map((queue) => queue.figures())));
      const oldestAgeSeconds = oldestUnreadAtMs === null ? 0 : Math.max(0, Math.floor((nowMs - oldestUnreadAtMs) / 1000));
      return { messages: backlog, oldestAgeSeconds };
    } catch (error) {
      if (isPosthornError(error, 'UNAVAILABLE')) return null;
      throw error;
    }
  }
}
