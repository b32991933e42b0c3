import { accountOf } from './account.ts';
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

/** A number of units that waiters share. */
interface Share {
  key: string;
  /** Units that are in use by the part of the share that a waiter belongs to: who uses least comes first. */
  used: number;
}

interface Place {
  used: number;
  /** Among those that wait. */
  position: number;
}

/**
 * Memory budget in units of one size: batches, or MiB of large payloads. One organization, with its webhooks and alerts, gets a share of the units, so that
 * a store that hangs, or endless transforms, leave the rest to others. Freed units go to the organization that uses least. Units are kept for a waiter that has waited for a while until it
 * has as many as it needs: those of its source, then those of its organization, then those of all.
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
    const wanted = { org: accountOf(org), source, places };
    if (!this.#enterNow(wanted) && !(await this.#wait(wanted, signal))) return null;
    return () => this.#leave(wanted);
  }

  /** Whether somebody waits who could enter, or come nearer to it, if one of this organization and this source left. */
  holdsUp(org: string, source: string): boolean {
    const account = accountOf(org);
    return this.#waiting.some((waiter) => {
      if (!this.#fitsSource(waiter)) return waiter.source === source;
      return this.#fitsOrganization(waiter) || waiter.org === account;
    });
  }

  #enterNow(wanted: Wanted): boolean {
    if (!this.#fits(wanted) || this.#isKeptFromIt(wanted, this.#waiting.length, this.#firstKept())) return false;
    this.#take(wanted);
    return true;
  }

  /** Of the units of each share, the waiter that they are kept for. */
  #firstKept(): Map<string, Place> {
    const kept = new Map<string, Place>();
    const sinceMs = this.#clock.now() - this.#waitMs * keptAfter;
    for (const [position, waiter] of this.#waiting.entries()) {
      if (waiter.sinceMs > sinceMs) break;
      const { key, used } = this.#lacks(waiter);
      const first = kept.get(key);
      if (first === undefined || used < first.used) kept.set(key, { used, position });
    }
    return kept;
  }

  #isKeptFromIt(wanted: Wanted, position: number, kept: Map<string, Place>): boolean {
    return this.#shares(wanted).some(({ key, used }) => {
      const first = kept.get(key);
      return first !== undefined && (first.used < used || (first.used === used && first.position < position));
    });
  }

  /** The share that has too few units for it; that of all when none has. */
  #lacks(wanted: Wanted): Share {
    const [ofSource, ofOrganization, ofAll] = this.#shares(wanted);
    if (!this.#fitsSource(wanted)) return ofSource;
    return this.#fitsOrganization(wanted) ? ofAll : ofOrganization;
  }

  /** Of its source, of its organization and of all. */
  #shares({ org, source }: Wanted): [Share, Share, Share] {
    return [
      { key: `source ${source}`, used: 0 },
      { key: `organization ${org}`, used: this.#usedBySourceOf(source) },
      { key: 'all', used: this.#usedBy(org) },
    ];
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

  #usedBySourceOf(source: string | null): number {
    return source === null ? 0 : (this.#usedBySource.get(source) ?? 0);
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

  /** The first waiter of the organization that uses least, of those that may enter now; null: none may. */
  #next(): Waiter | null {
    const kept = this.#firstKept();
    let next: Waiter | null = null;
    for (const [position, waiter] of this.#waiting.entries()) {
      if (next !== null && this.#usedBy(next.org) <= this.#usedBy(waiter.org)) continue;
      if (this.#fits(waiter) && !this.#isKeptFromIt(waiter, position, kept)) next = waiter;
    }
    return next;
  }
}
