import type { Clock } from '../../core/clock.ts';

const intervalMs = 100;

interface Waiting {
  /** The earliest is next. */
  dueMs: number;
  begin: () => void;
}

/** Paces status writes: ten a second in all, for any number of writers. */
export class WritePace {
  readonly #clock: Clock;
  readonly #waiting: Waiting[] = [];
  #nextAtMs = 0;
  #isServing = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when the caller may write, or at once when the signal aborts. Others that come up to `yieldsMs` later go before it. */
  turn(yieldsMs: number, signal: AbortSignal): Promise<void> {
    const turn = new Promise<void>((begin) => this.#waiting.push({ dueMs: this.#clock.now() + yieldsMs, begin }));
    if (!this.#isServing) void this.#serve(signal);
    return turn;
  }

  async #serve(signal: AbortSignal): Promise<void> {
    this.#isServing = true;
    for (let next = this.#first(); next !== undefined; next = this.#first()) {
      const waitMs = this.#nextAtMs - this.#clock.now();
      if (waitMs > 0 && !signal.aborted) {
        await this.#clock.sleep(waitMs, signal);
        continue;
      }
      this.#nextAtMs = Math.max(this.#clock.now(), this.#nextAtMs) + intervalMs;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      next.begin();
    }
    this.#isServing = false;
  }

  #first(): Waiting | undefined {
    return this.#waiting.reduce<Waiting | undefined>(
      (first, each) => (first === undefined || each.dueMs < first.dueMs ? each : first),
      undefined,
    );
  }
}
