import type { Clock } from '../core/clock.ts';
import { Semaphore } from '../core/semaphore.ts';

const pausesPerScript = 2;
const longestPauseMs = 50;
/** A script that takes longer does not hold up those behind it: their part of Redis may be another one. */
const longestTurnMs = 50;

/**
 * At this pace the scripts for an organization with very much work leave Redis room for those of others: one at a time, and after each a
 * pause twice as long as it took. The busier Redis is, the longer they take, and the longer are the pauses.
 */
export class Pace {
  readonly #clock: Clock;
  readonly #heldBack: () => string | null;
  readonly #turn = new Semaphore(1);

  /** `heldBack`: the organization whose work is held back; null: nobody else would wait for it, and scripts run at once. */
  constructor({ clock, heldBack }: { clock: Clock; heldBack: () => string | null }) {
    this.#clock = clock;
    this.#heldBack = heldBack;
  }

  get isOn(): boolean {
    return this.#heldBack() !== null;
  }

  holdsBack(organization: string): boolean {
    return this.#heldBack() === organization;
  }

  /** Resolves and rejects as the script does; its pause follows. */
  run<T>(script: () => Promise<T>): Promise<T> {
    if (!this.isOn) return script();
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
        await clock.sleep(Math.min(longestPauseMs, pausesPerScript * (clock.now() - startedAtMs)));
      });
    });
  }
}
