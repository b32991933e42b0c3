import type { Clock } from './clock.ts';

/** Activity longer ago (ms) is not recent. */
const recentMs = 10_000;

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
  get hasSeveral(): boolean {
    return this.#otherAtMs >= this.#clock.now() - recentMs;
  }
}
