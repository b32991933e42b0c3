import type { Clock } from '../../../core/clock.ts';
import type { RedisDeliveryQueue } from '../../../data/queue/redis-delivery-queue.ts';
import type { RedisBackoff } from '../../loops/redis-backoff.ts';
import type { ShardSignals } from '../shard-signals.ts';

/** Messages due so close together are moved by one call. */
const gatherDueMs = 10;

export interface DuePromotionOptions {
  queue: Pick<RedisDeliveryQueue, 'promote'>;
  clock: Clock;
  backoff: RedisBackoff;
  signals: ShardSignals;
}

/** Duty in one shard: moves retries and waiting targets when they are due. */
export class DuePromotion {
  readonly #options: DuePromotionOptions;
  #due: { atMs: number; cancel: () => void } | null = null;
  #isStopped = false;

  constructor(options: DuePromotionOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#isStopped = true;
    this.#due?.cancel();
  }

  /** Something is due in `ms`, as far as is known; null: nothing. */
  dueIn(ms: number | null): void {
    this.#promoteIn(ms, gatherDueMs);
  }

  /** Rejects when Redis is down. */
  async promote(): Promise<void> {
    const hints = await this.#options.queue.promote();
    // 0: more is due than one call moves.
    this.#promoteIn(hints.nextDueMs, hints.nextDueMs === 0 ? 0 : gatherDueMs);
    this.#options.signals.report(hints);
  }

  #promoteIn(ms: number | null, gatherMs: number): void {
    if (ms === null || this.#isStopped) return;
    const { clock } = this.#options;
    const atMs = clock.now() + Math.max(ms, gatherMs);
    if (this.#due !== null && this.#due.atMs <= atMs) return;
    this.#due?.cancel();
    this.#due = { atMs, cancel: clock.after(atMs - clock.now(), () => void this.#onDue()) };
  }

  async #onDue(): Promise<void> {
    this.#due = null;
    try {
      await this.promote();
    } catch (error) {
      this.dueIn(this.#options.backoff.recordFailure(error));
    }
  }
}
