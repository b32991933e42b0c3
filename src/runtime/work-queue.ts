import type { Clock } from '../core/clock.ts';
import { Fifo } from '../core/fifo.ts';
import { Round } from '../core/round.ts';
import { DelayHeap } from './delay-heap.ts';
import { parseKey } from './object-key.ts';

/** `live`: somebody changed something. `initial`: part of the first list; served when nothing live waits. */
export type Priority = 'live' | 'initial';

export interface WorkQueueOptions {
  clock: Clock;
  /** First delay of a failing key, in milliseconds. */
  baseDelayMs?: number;
  /** Longest delay of a failing key, in milliseconds. */
  maxDelayMs?: number;
  /** Number in [0, 1); spreads the retries. */
  random?: () => number;
}

/**
 * Keys to be reconciled, with the promises of client-go's workqueue: a key is given to one worker at a time; a key
 * added while it waits is not queued twice; a key added during processing is returned again after `done`; no add
 * is lost. A key waits with the higher of its priorities and the shorter of its delays. Namespaces are served in turn, so
 * that one with thousands of changes does not hold up the others. Its size is bounded by the number of distinct keys.
 */
export class WorkQueue {
  readonly #clock: Clock;
  readonly #baseDelayMs: number;
  readonly #maxDelayMs: number;
  readonly #random: () => number;
  /** Keys that wait or, while in `#processing`, must be returned again. */
  readonly #dirty = new Map<string, Priority>();
  readonly #processing = new Set<string>();
  /** Keys by their namespace. */
  readonly #ready: Record<Priority, Round<string>> = { live: new Round(), initial: new Round() };
  readonly #delayed = new DelayHeap();
  readonly #failures = new Map<string, number>();
  readonly #waiters = new Fifo<(key: string | undefined) => void>();
  #cancelTimer: () => void = () => {};
  #timerAt = Number.POSITIVE_INFINITY;
  #shutDown = false;
  #drained: (() => void)[] = [];

  constructor({ clock, baseDelayMs = 5, maxDelayMs = 300_000, random = Math.random }: WorkQueueOptions) {
    this.#clock = clock;
    this.#baseDelayMs = baseDelayMs;
    this.#maxDelayMs = maxDelayMs;
    this.#random = random;
  }

  /** Keys that wait for a worker; delayed ones and those being worked on do not count. */
  get depth(): number {
    let waitingBehindThemselves = 0;
    for (const key of this.#processing) if (this.#dirty.has(key)) waitingBehindThemselves++;
    return this.#dirty.size - waitingBehindThemselves;
  }

  /** Nothing waits, nothing is worked on; delayed keys do not count. */
  get isIdle(): boolean {
    return this.#dirty.size === 0 && this.#processing.size === 0;
  }

  add(key: string, priority: Priority = 'live'): void {
    if (this.#shutDown) return;
    const waiting = this.#dirty.get(key);
    if (waiting === 'live' || waiting === priority) return;
    this.#dirty.set(key, priority);
    if (this.#processing.has(key)) return;
    this.#ready[priority].add(namespaceOf(key), key);
    this.#serve();
  }

  /** Adds the key after `ms`; at once when `ms` is not positive. */
  addAfter(key: string, ms: number): void {
    if (this.#shutDown) return;
    if (ms <= 0) {
      this.add(key);
      return;
    }
    this.#delayed.add(key, this.#clock.now() + ms);
    this.#setTimer();
  }

  /** Adds the key after a delay that doubles with every call until `forget`, ±20 %. */
  addRateLimited(key: string): void {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    const delay = Math.min(this.#maxDelayMs, this.#baseDelayMs * 2 ** Math.min(failures, 40));
    this.addAfter(key, delay * (0.8 + 0.4 * this.#random()));
  }

  /** Ends the key's backoff; the next `addRateLimited` starts over. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** Resolves with the next key, which must be given back with `done`; with undefined once the queue is shut down. */
  get(): Promise<string | undefined> {
    return new Promise((resolve) => {
      this.#waiters.push(resolve);
      this.#serve();
    });
  }

  done(key: string): void {
    this.#processing.delete(key);
    const priority = this.#dirty.get(key);
    if (priority !== undefined) this.#ready[priority].add(namespaceOf(key), key);
    this.#serve();
  }

  /**
   * Takes no more keys and drops the delayed ones. With `drain`, workers still get what waits; without, it is dropped.
   * Resolves once every returned key is `done`.
   */
  shutdown({ drain }: { drain: boolean }): Promise<void> {
    this.#shutDown = true;
    this.#cancelTimer();
    this.#delayed.clear();
    this.#failures.clear();
    if (!drain) {
      this.#dirty.clear();
      this.#ready.live.clear();
      this.#ready.initial.clear();
    }
    return new Promise((resolve) => {
      this.#drained.push(resolve);
      this.#serve();
    });
  }

  #serve(): void {
    while (this.#waiters.size > 0) {
      const key = this.#take('live') ?? this.#take('initial');
      if (key === undefined) break;
      this.#dirty.delete(key);
      this.#processing.add(key);
      this.#waiters.shift()?.(key);
    }
    if (!this.#shutDown) return;
    // What is dirty while in processing comes back with its `done`, so workers are stopped only after that.
    if (this.#dirty.size === 0)
      for (let waiter = this.#waiters.shift(); waiter !== undefined; waiter = this.#waiters.shift()) waiter(undefined);
    if (this.isIdle) for (const resolve of this.#drained.splice(0)) resolve();
  }

  /** A key whose priority rose, or that was taken through the other lane, has left an entry behind: skipped here. */
  #take(lane: Priority): string | undefined {
    return this.#ready[lane].next((key) => this.#dirty.get(key) === lane && !this.#processing.has(key));
  }

  #setTimer(): void {
    const next = this.#delayed.nextAt;
    if (next === undefined || next >= this.#timerAt) return;
    this.#cancelTimer();
    this.#timerAt = next;
    this.#cancelTimer = this.#clock.after(next - this.#clock.now(), () => {
      this.#timerAt = Number.POSITIVE_INFINITY;
      const now = this.#clock.now();
      for (let key = this.#delayed.popDue(now); key !== undefined; key = this.#delayed.popDue(now)) this.add(key);
      this.#setTimer();
    });
  }
}

function namespaceOf(key: string): string {
  return parseKey(key).namespace ?? '';
}
