import type { Clock } from '../core/clock.ts';
import type { Pace } from '../core/pace.ts';
import type { DeliveryQueue, SettleAnswer, Settlement } from '../data/delivery-queue.ts';
import type { RedisTrouble } from './redis-trouble.ts';

const mostPerCall = 64;
/** Of so many destinations a call takes 2 to 3 ms of Redis: what is done for each costs more than what is done for a message. */
const mostDestinationsPerCall = 32;
/** Of an organization that is held back: as many as a worker takes of it at a time (`mostPerDequeueBesideOthers`). */
const fewDestinationsPerCall = 8;
/** So many of it wait for their turn; what exceeds them is written at once. */
const mostHeldBack = 128;
const flushAfterMs = 2;

export interface SettlerOptions {
  queue: Pick<DeliveryQueue, 'settle'>;
  worker: string;
  clock: Clock;
  trouble: RedisTrouble;
  /** The organization whose work is held back; null: none. */
  heldBack: () => string | null;
  /** At which it is. */
  pace: Pace;
  onSettled: (settlements: readonly Settlement[], answer: SettleAnswer) => void;
}

/**
 * Collects what attempts came to and writes it in batches: after 2 ms, or 64 of them, or those of 32 destinations. While Redis is away it keeps them and
 * tries again: a settlement sent twice changes nothing. Those of an organization that is held back are written apart, at its pace and in smaller batches,
 * for until it is settled a message of the others has its place under the caps and limits of its target.
 */
export class Settler {
  readonly #heldBackNow: () => string | null;
  readonly #atOnce: BatchWriter;
  readonly #heldBack: BatchWriter;

  constructor(options: SettlerOptions) {
    const { heldBack, pace } = options;
    this.#heldBackNow = heldBack;
    this.#atOnce = new BatchWriter({ ...options, mostDestinations: mostDestinationsPerCall, inTurn: (step) => step() });
    this.#heldBack = new BatchWriter({ ...options, mostDestinations: fewDestinationsPerCall, inTurn: (step) => pace.run(step) });
  }

  add(settlement: Settlement): void {
    const isHeldBack = settlement.job.target.org === this.#heldBackNow() && this.#heldBack.waiting < mostHeldBack;
    (isHeldBack ? this.#heldBack : this.#atOnce).add(settlement);
  }

  /** Resolves when everything added is written, or when the signal aborts; others are rung for what work is left. */
  async drain(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#atOnce.drain(signal), this.#heldBack.drain(signal)]);
  }
}

interface BatchWriterOptions extends Omit<SettlerOptions, 'heldBack' | 'pace'> {
  mostDestinations: number;
  /** Runs a step once it is its turn. */
  inTurn: (step: () => Promise<void>) => Promise<void>;
}

class BatchWriter {
  readonly #options: BatchWriterOptions;
  readonly #waiting: Settlement[] = [];
  #isWriting = false;
  #cancelTimer: (() => void) | null = null;
  #isDraining = false;
  #drained: (() => void) | null = null;

  constructor(options: BatchWriterOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  add(settlement: Settlement): void {
    this.#waiting.push(settlement);
    if (this.#waiting.length >= mostPerCall || this.#isDraining) this.#flush();
    else this.#cancelTimer ??= this.#options.clock.after(flushAfterMs, () => this.#flush());
  }

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
    const { clock, trouble, inTurn } = this.#options;
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      try {
        await (this.#isDraining ? this.#step() : inTurn(() => this.#step()));
      } catch (error) {
        await clock.sleep(trouble.met(error));
      }
    }
    this.#isWriting = false;
    this.#drained?.();
  }

  async #step(): Promise<void> {
    const { queue, worker, onSettled } = this.#options;
    const batch = this.#nextBatch();
    const answer = await queue.settle(worker, batch, { ring: this.#isDraining });
    this.#waiting.splice(0, batch.length);
    onSettled(batch, answer);
  }

  #nextBatch(): Settlement[] {
    const most = this.#waiting.slice(0, mostPerCall);
    const destinations = new Set<string>();
    for (const [i, { job }] of most.entries()) {
      destinations.add(job.target.destinationId);
      if (destinations.size > this.#options.mostDestinations) return most.slice(0, i);
    }
    return most;
  }
}
