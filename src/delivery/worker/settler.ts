import type { Clock } from '../../core/clock.ts';
import type { SettleAnswer, Settlement } from '../../data/queue/delivery-queue.ts';
import type { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import type { RedisBackoff } from '../loops/redis-backoff.ts';

const maxPerCall = 64;
/** A call for this many destinations takes 2 to 3 ms of Redis: a destination costs more than a message. */
const maxDestinationsPerCall = 32;
const flushAfterMs = 2;

export interface SettlerOptions {
  queue: Pick<RedisDeliveryQueue, 'settle'>;
  worker: string;
  clock: Clock;
  backoff: RedisBackoff;
  onSettled: (settlements: readonly Settlement[], answer: SettleAnswer) => void;
}

/**
 * Collects outcomes of attempts and writes them in batches: after 2 ms, or 64 of them, or those of 32 destinations. While Redis is down it keeps them and
 * tries again: a settlement sent twice changes nothing.
 */
export class Settler {
  readonly #options: SettlerOptions;
  readonly #waiting: Settlement[] = [];
  #isWriting = false;
  #cancelTimer: (() => void) | null = null;
  #isDraining = false;
  #drained: (() => void) | null = null;

  constructor(options: SettlerOptions) {
    this.#options = options;
  }

  add(settlement: Settlement): void {
    this.#waiting.push(settlement);
    if (this.#waiting.length >= maxPerCall || this.#isDraining) this.#flush();
    else this.#cancelTimer ??= this.#options.clock.after(flushAfterMs, () => this.#flush());
  }

  /** Resolves when everything added is written, or when the signal aborts; others are rung for what work is left. */
  async drain(signal: AbortSignal): Promise<void> {
    this.#isDraining = true;
    this.#flush();
    if (this.#waiting.length === 0 && !this.#isWriting) return;
    await new Promise<void>((resolve) => {
      this.#drained = resolve;
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }

  #flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (!this.#isWriting && this.#waiting.length > 0) void this.#write();
  }

  async #write(): Promise<void> {
    const { queue, worker, clock, backoff, onSettled } = this.#options;
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      const batch = this.#nextBatch();
      try {
        const answer = await queue.settle(worker, batch, { ring: this.#isDraining });
        this.#waiting.splice(0, batch.length);
        onSettled(batch, answer);
      } catch (error) {
        await clock.sleep(backoff.recordFailure(error));
      }
    }
    this.#isWriting = false;
    this.#drained?.();
  }

  #nextBatch(): Settlement[] {
    const most = this.#waiting.slice(0, maxPerCall);
    const destinations = new Set<string>();
    for (const [i, { job }] of most.entries()) {
      destinations.add(job.target.destinationId);
      if (destinations.size > maxDestinationsPerCall) return most.slice(0, i);
    }
    return most;
  }
}
