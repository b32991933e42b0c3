import type { Clock } from '../core/clock.ts';
import type { DeliveryQueue, SettleAnswer, Settlement } from '../data/delivery-queue.ts';
import type { Pace } from './pace.ts';
import type { RedisTrouble } from './redis-trouble.ts';

const mostPerCall = 64;
/** Of so many destinations a call takes 2 to 3 ms of Redis: what is done for each costs more than what is done for a message. */
const mostDestinationsPerCall = 32;
/** Of those who are held back. */
const fewDestinationsPerCall = 12;
const flushAfterMs = 2;

export interface SettlerOptions {
  queue: Pick<DeliveryQueue, 'settle'>;
  worker: string;
  clock: Clock;
  trouble: RedisTrouble;
  pace: Pace;
  onSettled: (settlements: readonly Settlement[], answer: SettleAnswer) => void;
}

/**
 * Collects what attempts came to and writes it in batches: after 2 ms, or 64 of them, or those of 32 destinations. While Redis is away it keeps them and
 * tries again: a settlement sent twice changes nothing. Those of an organization that is held back are written apart, at its pace and in smaller batches:
 * until it is settled a message has its place under the caps and limits of its target.
 */
export class Settler {
  readonly #pace: Pace;
  readonly #atOnce: BatchWriter;
  readonly #heldBack: BatchWriter;

  constructor(options: SettlerOptions) {
    const { queue, worker, pace } = options;
    this.#pace = pace;
    const write: Write = (batch, ring) => queue.settle(worker, batch, { ring });
    this.#atOnce = new BatchWriter({ ...options, mostDestinations: mostDestinationsPerCall, write });
    this.#heldBack = new BatchWriter({
      ...options,
      mostDestinations: fewDestinationsPerCall,
      write: (batch, ring) => pace.run(() => write(batch, ring)),
    });
  }

  add(settlement: Settlement): void {
    const writer = this.#pace.holdsBack(settlement.job.target.org) ? this.#heldBack : this.#atOnce;
    writer.add(settlement);
  }

  /** Resolves when everything added is written, or when the signal aborts; others are rung for what work is left. */
  async drain(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#atOnce.drain(signal), this.#heldBack.drain(signal)]);
  }
}

type Write = (batch: readonly Settlement[], ring: boolean) => Promise<SettleAnswer>;

interface BatchWriterOptions extends Pick<SettlerOptions, 'clock' | 'trouble' | 'onSettled'> {
  mostDestinations: number;
  write: Write;
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
    const { clock, trouble, write, onSettled } = this.#options;
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      const batch = this.#nextBatch();
      try {
        const answer = await write(batch, this.#isDraining);
        this.#waiting.splice(0, batch.length);
        onSettled(batch, answer);
      } catch (error) {
        await clock.sleep(trouble.met(error));
      }
    }
    this.#isWriting = false;
    this.#drained?.();
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
