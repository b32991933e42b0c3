import type { Clock } from './clock.ts';

const defaultWaitMs = 10_000;

interface Waiter {
  org: string;
  places: number;
  enter: () => void;
}

/**
 * Memory budget in units of one size: batches, or MiB of large payloads. One organization gets a share of the units, so that a store that hangs, or endless
 * transforms, leave the rest to others. Freed units go to the organization that uses least.
 */
export class OrganizationBudget {
  readonly #places: number;
  readonly #placesOfOrganization: number;
  readonly #waitMs: number;
  readonly #clock: Clock;
  readonly #used = new Map<string, number>();
  readonly #waiting: Waiter[] = [];
  #total = 0;

  constructor({
    places,
    placesOfOrganization,
    clock,
    waitMs = defaultWaitMs,
  }: {
    places: number;
    placesOfOrganization: number;
    clock: Clock;
    /** How long one waits. Default: 10 s. */
    waitMs?: number;
  }) {
    this.#places = places;
    this.#placesOfOrganization = placesOfOrganization;
    this.#clock = clock;
    this.#waitMs = waitMs;
  }

  /**
   * Returns what gives the places back; null when they did not become free in time, or `signal` has ended the wait. At most as many as an organization may
   * have.
   */
  async enter(org: string, places = 1, signal?: AbortSignal): Promise<(() => void) | null> {
    if (!this.#take(org, places) && !(await this.#wait(org, places, signal))) return null;
    return () => this.#leave(org, places);
  }

  #take(org: string, places: number): boolean {
    if (!this.#fits(org, places)) return false;
    this.#total += places;
    this.#used.set(org, this.#usedBy(org) + places);
    return true;
  }

  #fits(org: string, places: number): boolean {
    return this.#total + places <= this.#places && this.#usedBy(org) + places <= this.#placesOfOrganization;
  }

  #usedBy(org: string): number {
    return this.#used.get(org) ?? 0;
  }

  #wait(org: string, places: number, signal: AbortSignal | undefined): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (hasEntered: boolean): void => {
        cancel();
        signal?.removeEventListener('abort', giveUp);
        resolve(hasEntered);
      };
      const giveUp = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        end(false);
      };
      const waiter: Waiter = { org, places, enter: () => end(true) };
      const cancel = this.#clock.after(this.#waitMs, giveUp);
      if (signal?.aborted === true) return end(false);
      signal?.addEventListener('abort', giveUp);
      this.#waiting.push(waiter);
    });
  }

  #leave(org: string, places: number): void {
    this.#total -= places;
    const own = this.#usedBy(org) - places;
    if (own === 0) this.#used.delete(org);
    else this.#used.set(org, own);
    for (let next = this.#next(); next !== null && this.#take(next.org, next.places); next = this.#next()) {
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      next.enter();
    }
  }

  /** Of those that there is room for, the first one of the organization that has least; null: nobody. */
  #next(): Waiter | null {
    let next: Waiter | null = null;
    for (const waiter of this.#waiting) {
      if (!this.#fits(waiter.org, waiter.places)) continue;
      if (next === null || this.#usedBy(waiter.org) < this.#usedBy(next.org)) next = waiter;
    }
    return next;
  }
}
