import type { Clock } from '../core/clock.ts';

const tickMs = 100;

/** Something that has until a tick to be done. */
export interface Expirable {
  deadlineTick: number;
  /** Called once, when the deadline has passed. */
  expire(): void;
}

/**
 * Deadlines of many short things with one timer for all, exact to a tenth of a second. Idle, there is no timer.
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #waiting = new Set<Expirable>();
  #tick = 0;
  #isTicking = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sets the deadline, or moves it. */
  set(item: Expirable, ms: number): void {
    item.deadlineTick = this.#tick + Math.ceil(ms / tickMs);
    this.#waiting.add(item);
    if (!this.#isTicking) this.#arm();
  }

  clear(item: Expirable): void {
    this.#waiting.delete(item);
  }

  #arm(): void {
    this.#isTicking = true;
    this.#clock.after(tickMs, () => {
      this.#tick += 1;
      for (const item of this.#waiting) {
        if (item.deadlineTick > this.#tick) continue;
        this.#waiting.delete(item);
        item.expire();
      }
      if (this.#waiting.size > 0) this.#arm();
      else this.#isTicking = false;
    });
  }
}
