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

/** A waiter among those that wait. Who uses less of a share comes first there, then who waits for longer. */
interface Place {
  used: number;
  position: number;
}

/** The waiters that units are kept for: of a source, of an organization, of all. */
interface Kept {
  ofSource: Map<string | null, Place>;
  ofOrganization: Map<string, Place>;
  ofAll: Place | null;
}

/**
 * Memory budget in units of one size: batches, or MiB of large payloads. One organization, with its webhooks and alerts, gets a share of the units, so that
 * a store that hangs, or endless transforms, leave the rest to others. Freed units go to the organization that uses least. Units are kept for a waiter that
 * has waited for a while until it has as many as it needs: those of its source, then those of its organization, then those of all.
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
  #letsInLater = false;

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
    if (!this.#fits(wanted) || this.#isBarred(wanted, this.#waiting.length, this.#firstKept())) return false;
    this.#take(wanted);
    return true;
  }

  #firstKept(): Kept {
    const kept: Kept = { ofSource: new Map(), ofOrganization: new Map(), ofAll: null };
    const sinceMs = this.#clock.now() - this.#waitMs * keptAfter;
    const lackOthers: Place[] = [];
    for (const [position, waiter] of this.#waiting.entries()) {
      if (waiter.sinceMs > sinceMs) break;
      // The first one that its source has too few units for bars the later ones of the source.
      if (kept.ofSource.has(waiter.source)) continue;
      if (!this.#fitsSource(waiter)) kept.ofSource.set(waiter.source, { used: 0, position });
      else if (!this.#fitsOrganization(waiter)) {
        const place = { used: this.#usedBySourceOf(waiter.source), position };
        const first = kept.ofOrganization.get(waiter.org);
        if (first === undefined || place.used < first.used) kept.ofOrganization.set(waiter.org, place);
      } else lackOthers.push({ used: this.#usedBy(waiter.org), position });
    }
    for (const place of lackOthers) {
      const waiter = this.#waiting[place.position];
      const isFirst = kept.ofAll === null || place.used < kept.ofAll.used;
      if (waiter !== undefined && isFirst && !this.#isBarred(waiter, place.position, { ...kept, ofAll: null })) kept.ofAll = place;
    }
    return kept;
  }

  /** Whether it leaves what is free to somebody who comes first. */
  #isBarred({ org, source }: Wanted, position: number, { ofSource, ofOrganization, ofAll }: Kept): boolean {
    return (
      isBefore(ofSource.get(source), { used: 0, position }) ||
      isBefore(ofOrganization.get(org), { used: this.#usedBySourceOf(source), position }) ||
      isBefore(ofAll, { used: this.#usedBy(org), position })
    );
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
        this.#letInLater();
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

  /** What was kept for those that gave up in this turn of the event loop; many do at once. */
  #letInLater(): void {
    if (this.#letsInLater) return;
    this.#letsInLater = true;
    setImmediate(() => {
      this.#letsInLater = false;
      this.#letIn();
    });
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
      if (this.#fits(waiter) && !this.#isBarred(waiter, position, kept)) next = waiter;
    }
    return next;
  }
}

function isBefore(first: Place | null | undefined, { used, position }: Place): boolean {
  if (first === null || first === undefined) return false;
  return first.used < used || (first.used === used && first.position < position);
}
