import type { Clock } from '../../src/core/clock.ts';

/** Time that is stopped until `advance` moves it. */
export class FakeClock implements Clock {
  #nowMs: number;
  #order = 0;
  readonly #timers = new Set<{ atMs: number; order: number; callback: () => void }>();

  constructor(nowMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = nowMs;
  }

  now(): number {
    return this.#nowMs;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { atMs: this.#nowMs + Math.max(0, ms), order: this.#order++, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      const cancel = this.after(ms, () => {
        signal?.removeEventListener('abort', abort);
        resolve();
      });
      const abort = (): void => {
        cancel();
        resolve();
      };
      signal?.addEventListener('abort', abort, { once: true });
    });
  }

  /** How many timers wait. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Moves time by `ms`, firing what falls due in order; between two timers what they set off runs to its next wait. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await settle();
    for (;;) {
      const next = [...this.#timers].filter((timer) => timer.atMs <= untilMs).sort((a, b) => a.atMs - b.atMs || a.order - b.order)[0];
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.callback();
      await settle();
    }
    this.#nowMs = untilMs;
  }

  /** Moves time without firing anything, as a stopped process sees it; the next `advance` fires what is overdue. */
  jump(ms: number): void {
    this.#nowMs += ms;
  }
}

/** Lets promise chains and setImmediate callbacks run until the event loop has gone round a few times. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}
