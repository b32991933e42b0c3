import type { Clock } from '../core/clock.ts';

const firstDelayMs = 800;
const ceilingMs = 30_000;
const healthyMs = 120_000;

/** Delays of 0.8 s, doubled up to 30 s, with jitter; from the start again after two minutes without a failure (client-go's reflector). */
export class ReflectorBackoff {
  readonly #clock: Clock;
  #nextDelayMs = firstDelayMs;
  #lastFailureMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds to wait after a failure; at least `atLeastMs`, which the server requested. */
  next(atLeastMs = 0): number {
    const nowMs = this.#clock.now();
    if (nowMs - this.#lastFailureMs > healthyMs) this.#nextDelayMs = firstDelayMs;
    const delayMs = this.#nextDelayMs * (0.75 + Math.random() / 2);
    this.#nextDelayMs = Math.min(ceilingMs, this.#nextDelayMs * 2);
    const waitMs = Math.max(atLeastMs, Math.min(ceilingMs, delayMs));
    this.#lastFailureMs = nowMs + waitMs;
    return waitMs;
  }
}
