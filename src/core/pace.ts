import type { Clock } from './clock.ts';
import { Semaphore } from './semaphore.ts';

const longestPauseMs = 50;
/** A script that takes longer does not hold up those behind it: their part of Redis may be another one. */
const longestTurnMs = 50;

/**
 * At a pace the scripts for very much work leave Redis room for others: one at a time, and after each pauses as long as it took. The busier
 * Redis is, the longer they take, and the longer are the pauses.
 */
export class Pace {
  readonly #clock: Clock;
  readonly #pausesPerScript: () => number;
  readonly #turn = new Semaphore(1);

  /** `pausesPerScript`: how many; 0: nobody would wait, and scripts run at once. */
  constructor({ clock, pausesPerScript }: { clock: Clock; pausesPerScript: () => number }) {
    this.#clock = clock;
    this.#pausesPerScript = pausesPerScript;
  }

  /** Resolves and rejects as the script does; its pauses follow. */
  run<T>(script: () => Promise<T>): Promise<T> {
    if (this.#pausesPerScript() === 0) return script();
    return new Promise((resolve, reject) => {
      void this.#turn.run(1, async () => {
        const clock = this.#clock;
        const startedAtMs = clock.now();
        await new Promise<void>((end) => {
          const cancel = clock.after(longestTurnMs, end);
          const ended = (): void => {
            cancel();
            end();
          };
          script().then(resolve, reject).then(ended, ended);
        });
        await clock.sleep(Math.min(longestPauseMs, this.#pausesPerScript() * (clock.now() - startedAtMs)));
      });
    });
  }
}
