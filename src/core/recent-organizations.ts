import type { Clock } from './clock.ts';

/** Activity longer ago (ms) is not recent. */
export const recentMs = 10_000;

/** Tracks whether more than one organization was active in the last 10 s. */
export class RecentOrganizations {
  readonly #clock: Clock;
  #last: string | null = null;
  #lastAtMs = 0;
  /** Last activity of an organization other than `#last`. */
  #otherAtMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(organization: string): void {
    if (this.#last !== null && this.#last !== organization) this.#otherAtMs = this.#lastAtMs;
    this.#last = organization;
    this.#lastAtMs = this.#clock.now();
  }

  /** Whether there were more than one. */
  get areSeveral(): boolean {
    return this.#isRecent(this.#otherAtMs);
  }

  hasOthersThan(organization: string): boolean {
    if (this.#last === null) return false;
    return this.#isRecent(this.#last === organization ? this.#otherAtMs : this.#lastAtMs);
  }

  #isRecent(atMs: number): boolean {
    return atMs >= this.#clock.now() - recentMs;
  }
}
