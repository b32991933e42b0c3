import type { Clock } from './clock.ts';

const longestPauseMs = 50;
/** A script that takes longer does not hold up those behind it: their part of Redis may be another one. */
const longestTurnMs = 50;

/** Runs scripts in scheduled order. Resolves and rejects as the script does. */
export interface ScriptRunner {
  run<T>(script: () => Promise<T>): Promise<T>;
}

/**
 * Paces scripts with very much work, to leave Redis time for others: one at a time, and after each pauses as long as it took. The busier
 * Redis is, the longer they take, and the longer are the pauses. Owners of waiting scripts are served round-robin.
 */
export class PacedExecutor {
  readonly #clock: Clock;
  readonly #pausesPerScript: () => number;
  /** Waiting scripts by owner; the first one is next. */
  readonly #waiting = new Map<string, (() => Promise<void>)[]>();
  #isRunning = false;

  constructor({ clock, pausesPerScript }: { clock: Clock; pausesPerScript: () => number }) {
    this.#clock = clock;
    this.#pausesPerScript = pausesPerScript;
  }

  /** The scripts of one owner. */
  runnerOf(whom: string): ScriptRunner {
    return {
      run: (script) =>
        new Promise((resolve, reject) => this.#add(whom, () => this.#turn(() => (async () => await script())().then(resolve, reject)))),
    };
  }

  #add(whom: string, turn: () => Promise<void>): void {
    const waiting = this.#waiting.get(whom);
    if (waiting === undefined) this.#waiting.set(whom, [turn]);
    else waiting.push(turn);
    if (!this.#isRunning) void this.#runAll();
  }

  async #runAll(): Promise<void> {
    this.#isRunning = true;
    for (let turn = this.#next(); turn !== undefined; turn = this.#next()) await turn();
    this.#isRunning = false;
  }

  #next(): (() => Promise<void>) | undefined {
    for (const [whom, waiting] of this.#waiting) {
      const turn = waiting.shift();
      this.#waiting.delete(whom);
      if (waiting.length > 0) this.#waiting.set(whom, waiting);
      return turn;
    }
    return undefined;
  }

  /** Ends with the pauses. */
  async #turn(script: () => Promise<void>): Promise<void> {
    const clock = this.#clock;
    const startedAtMs = clock.now();
    await new Promise<void>((end) => {
      const cancel = clock.after(longestTurnMs, end);
      void script().finally(() => {
        cancel();
        end();
      });
    });
    const tookMs = clock.now() - startedAtMs;
    await clock.sleep(Math.min(longestPauseMs, this.#pausesPerScript() * tookMs));
  }
}
