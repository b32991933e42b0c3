import type { Clock } from '../../core/clock.ts';

const intervalMs = 100;

interface Waiting {
  /** Whose is the earliest has the next turn. */
  dueMs: number;
  begin: () => void;
}

/** Turns to write a status: ten a second in all, however many want to. */
export class WritePace {
  readonly #clock: Clock;
  readonly #waiting: Waiting[] = [];
  #nextAtMs = 0;
  #isServing = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when it is the caller's turn, or at once when the signal aborts. Others that come up to `yieldsMs` later go before it. */
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
