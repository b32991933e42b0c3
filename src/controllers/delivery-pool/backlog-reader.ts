import type { Clock } from '../../core/clock.ts';
import { isPosthornError } from '../../core/errors.ts';
import type { DeliveryQueue } from '../../data/delivery-queue.ts';
import { figuresOfAll } from '../../data/queue-figures.ts';
import type { Backlog } from './backlog-scaler.ts';

/** Several pools, and several reasons to look at one of them, share one look. */
const freshMs = 5000;

/** What waits for workers in all shards. */
export class BacklogReader {
  readonly #queues: readonly Pick<DeliveryQueue, 'figures'>[];
  readonly #clock: Clock;
  #last: { atMs: number; backlog: Promise<Backlog | null> } | null = null;

  constructor({ queues, clock }: { queues: readonly Pick<DeliveryQueue, 'figures'>[]; clock: Clock }) {
    this.#queues = queues;
    this.#clock = clock;
  }

  /** At most 5 seconds old; null without Redis. */
  read(): Promise<Backlog | null> {
    const nowMs = this.#clock.now();
    if (this.#last === null || nowMs - this.#last.atMs >= freshMs) this.#last = { atMs: nowMs, backlog: this.#look(nowMs) };
    return this.#last.backlog;
  }

  async #look(nowMs: number): Promise<Backlog | null> {
    try {
      const { backlog, oldestUnreadAtMs } = figuresOfAll(await Promise.all(this.#queues.map((queue) => queue.figures())));
      const oldestAgeSeconds = oldestUnreadAtMs === null ? 0 : Math.max(0, Math.floor((nowMs - oldestUnreadAtMs) / 1000));
      return { messages: backlog, oldestAgeSeconds };
    } catch (error) {
      if (isPosthornError(error, 'UNAVAILABLE')) return null;
      throw error;
    }
  }
}
