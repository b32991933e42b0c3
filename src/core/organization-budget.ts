import type { Clock } from './clock.ts';

const defaultWaitMs = 10_000;

/** The part of its time after which a waiter has what becomes free kept for it. */
const keptAfter = 1 / 4;

interface Wanted {
  org: string;
  /** Within the organization; null: nothing that has a share of its own. */
  source: string | null;
  places: number;
}

interface Waiter extends Wanted {
  sinceMs: number;
  enter: () => void;
}

/**
 * Memory budget in units of one size: batches, or MiB of large payloads. One organization gets a share of the units, so that a store that hangs, or endless
 * transforms, leave the rest to others. Freed units go to the organization that uses least; once it has waited for a while, they are kept for it until it
 * has as many as it needs.
 */
export class OrganizationBudget {
  readonly #places: number;
  readonly #placesOfOrganization: number;
  readonly #placesOfSource: number;
  readonly #waitMs: number;
  readonly #clock: Clock;
  readonly #used = new Map<string, number>();
  readonly #usedBySource = new Map<string, number>();
  readonly #waiting: Waiter[] = [];
  #total = 0;

  constructor({
    places,
    placesOfOrganization,
    placesOfSource = placesOfOrganization,
    clock,
    waitMs = defaultWaitMs,
  }: {
    places: number;
    placesOfOrganization: number;
    placesOfSource?: number;
    clock: Clock;
    /** How long one waits. Default: 10 s. */
    waitMs?: number;
  }) {
    this.#places = places;
    this.#placesOfOrganization = placesOfOrganization;
    this.#placesOfSource = placesOfSource;
    this.#clock = clock;
    this.#waitMs = waitMs;
  }

  /**
   * Returns what gives the places back; null when they did not become free in time, or `signal` has ended the wait. At most as many as an organization, and
   * a source of it, may have.
   */
  async enter(
    org: string,
    places = 1,
    { source = null, signal }: { source?: string | null; signal?: AbortSignal } = {},
  ): Promise<(() => void) | null> {
    const wanted = { org, source, places };
    if (!this.#enterNow(wanted) && !(await this.#wait(wanted, signal))) return null;
    return () => this.#leave(wanted);
  }

  /** Whether somebody waits who could enter, or come nearer to it, if one of this organization and this source left. */
  holdsUp(org: string, source: string): boolean {
    return this.#waiting.some((waiter) => {
      if (!this.#fitsSource(waiter)) return waiter.source === source;
      return this.#fitsOrganization(waiter) || waiter.org === org;
    });
  }

  #enterNow(wanted: Wanted): boolean {
    const isKept = this.#waiting.some((waiter) => this.#isKeptFor(waiter) && this.#usedBy(waiter.org) <= this.#usedBy(wanted.org));
    if (isKept || !this.#fits(wanted)) return false;
    this.#take(wanted);
    return true;
  }

  #isKeptFor(waiter: Waiter): boolean {
    return this.#clock.now() - waiter.sinceMs >= this.#waitMs * keptAfter && this.#hasShareFor(waiter);
  }

  #take({ org, source, places }: Wanted): void {
    this.#total += places;
    this.#used.set(org, this.#usedBy(org) + places);
    if (source !== null) this.#usedBySource.set(source, this.#usedBySourceOf(source) + places);
  }

  #fits(wanted: Wanted): boolean {
    return this.#total + wanted.places <= this.#places && this.#hasShareFor(wanted);
  }

  #hasShareFor(wanted: Wanted): boolean {
    return this.#fitsOrganization(wanted) && this.#fitsSource(wanted);
  }

  #fitsOrganization({ org, places }: Wanted): boolean {
    return this.#usedBy(org) + places <= this.#placesOfOrganization;
  }

  #fitsSource({ source, places }: Wanted): boolean {
    return source === null || this.#usedBySourceOf(source) + places <= this.#placesOfSource;
  }

  #usedBy(org: string): number {
    return this.#used.get(org) ?? 0;
  }

  #usedBySourceOf(source: string): number {
    return this.#usedBySource.get(source) ?? 0;
  }

  #wait(wanted: Wanted, signal: AbortSignal | undefined): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (hasEntered: boolean): void => {
        cancel();
        signal?.removeEventListener('abort', giveUp);
        resolve(hasEntered);
      };
      const giveUp = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        end(false);
        // What was kept for it.
        this.#letIn();
      };
      const waiter: Waiter = { ...wanted, sinceMs: this.#clock.now(), enter: () => end(true) };
      const cancel = this.#clock.after(this.#waitMs, giveUp);
      if (signal?.aborted === true) return end(false);
      signal?.addEventListener('abort', giveUp);
      this.#waiting.push(waiter);
    });
  }

  #leave({ org, source, places }: Wanted): void {
    this.#total -= places;
    const own = this.#usedBy(org) - places;
    if (own === 0) this.#used.delete(org);
    else this.#used.set(org, own);
    if (source !== null) {
      const ofSource = this.#usedBySourceOf(source) - places;
      if (ofSource === 0) this.#usedBySource.delete(source);
      else this.#usedBySource.set(source, ofSource);
    }
    this.#letIn();
  }

  #letIn(): void {
    for (let next = this.#next(); next !== null; next = this.#next()) {
      this.#take(next);
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      next.enter();
    }
  }

  /** The first one of the organization that has least, of those that there is room for, or is kept for; null: nobody can enter now. */
  #next(): Waiter | null {
    let next: Waiter | null = null;
    for (const waiter of this.#waiting) {
      if (!this.#fits(waiter) && !this.#isKeptFor(waiter)) continue;
      if (next === null || this.#usedBy(waiter.org) < this.#usedBy(next.org)) next = waiter;
    }
    return next !== null && this.#fits(next) ? next : null;
  }
}
