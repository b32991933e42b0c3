import { accountOf } from './account.ts';
import type { Clock } from './clock.ts';
import { SharedPlaces } from './shared-places.ts';

const defaultWaitMs = 10_000;

/** The part of its time after which a waiter has what becomes free kept for it. */
const keptAfter = 1 / 4;

interface Wanted {
  org: string;
  /** With its organization; null: nothing that has a share of its own. */
  source: string | null;
  places: number;
}

/** How many of its places are of the last quarter: of all, and of what its organization may have. */
interface Grant {
  ofAll: number;
  ofOrganization: number;
}

interface Waiter extends Wanted {
  sinceMs: number;
  enter: (grant: Grant) => void;
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
 * a store that hangs, or endless transforms, leave the rest to others. Of the last quarter it gets units only while as many are left as it has (`SharedPlaces`),
 * and so do its sources of its share. Freed units go to the organization that uses least. All but the last quarter is kept for a waiter that has waited for a
 * while until it has as many units as it needs: those of its source, then those of its organization, then those of all.
 */
export class OrganizationBudget {
  readonly #all: SharedPlaces;
  readonly #placesOfOrganization: number;
  readonly #placesOfSource: number;
  readonly #leastPlaces: number;
  readonly #waitMs: number;
  readonly #clock: Clock;
  /** The share of each that has units. */
  readonly #organizations = new Map<string, SharedPlaces>();
  readonly #unused: SharedPlaces;
  readonly #waiting: Waiter[] = [];
  #letsInLater = false;

  constructor({
    places,
    placesOfOrganization,
    placesOfSource = placesOfOrganization,
    leastPlaces = 1,
    clock,
    waitMs = defaultWaitMs,
  }: {
    places: number;
    placesOfOrganization: number;
    placesOfSource?: number;
    /** Nobody needs fewer. */
    leastPlaces?: number;
    clock: Clock;
    /** How long one waits. Default: 10 s. */
    waitMs?: number;
  }) {
    this.#all = new SharedPlaces(places, leastPlaces);
    this.#placesOfOrganization = placesOfOrganization;
    this.#placesOfSource = placesOfSource;
    this.#leastPlaces = leastPlaces;
    this.#unused = this.#newShare();
    this.#clock = clock;
    this.#waitMs = waitMs;
  }

  #newShare(): SharedPlaces {
    return new SharedPlaces(this.#placesOfOrganization, this.#leastPlaces);
  }

  /**
   * Returns what gives the places back; null when they did not become free in time, or `signal` has ended the wait. At most as many as an organization, and
   * a source of it, may have but for the last quarter.
   */
  async enter(
    org: string,
    places = 1,
    { source = null, signal }: { source?: string | null; signal?: AbortSignal } = {},
  ): Promise<(() => void) | null> {
    const account = accountOf(org);
    const wanted = { org: account, source: source === null ? null : sourceKey(account, source), places };
    const grant = this.#enterNow(wanted) ?? (await this.#wait(wanted, signal));
    return grant === null ? null : () => this.#leave(wanted, grant);
  }

  /** Whether somebody waits who could enter, or come nearer to it, if one of this organization and this source left. */
  holdsUp(org: string, source: string): boolean {
    const account = accountOf(org);
    const own = sourceKey(account, source);
    return this.#waiting.some((waiter) => {
      if (!this.#fitsSource(waiter)) return waiter.source === own;
      return this.#fitsOrganization(waiter) || waiter.org === account;
    });
  }

  #enterNow(wanted: Wanted): Grant | null {
    const grant = this.#grantFor(wanted, this.#waiting.length, this.#firstKept());
    if (grant !== null) this.#take(wanted, grant);
    return grant;
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
        const place = { used: this.#usedBySource(waiter), position };
        const first = kept.ofOrganization.get(waiter.org);
        if (first === undefined || place.used < first.used) kept.ofOrganization.set(waiter.org, place);
      } else lackOthers.push({ used: this.#usedBy(waiter.org), position });
    }
    for (const place of lackOthers) {
      const waiter = this.#waiting[place.position];
      const isFirst = kept.ofAll === null || place.used < kept.ofAll.used;
      if (waiter !== undefined && isFirst && this.#ofItsOrganization(waiter, place.position, kept) !== null) kept.ofAll = place;
    }
    return kept;
  }

  /** Null: it may not enter now. What is kept for somebody who comes first is left to that one. */
  #grantFor(wanted: Wanted, position: number, kept: Kept): Grant | null {
    const ofOrganization = this.#ofItsOrganization(wanted, position, kept);
    if (ofOrganization === null) return null;
    const { org, places } = wanted;
    const ofAll = this.#all.ofQuarter(org, places, { onlyQuarter: isBefore(kept.ofAll, { used: this.#usedBy(org), position }) });
    return ofAll === null ? null : { ofAll, ofOrganization };
  }

  /** How many places it gets of the last quarter of its organization; null: it gets none of its organization, or its source. */
  #ofItsOrganization(wanted: Wanted, position: number, { ofSource, ofOrganization }: Kept): number | null {
    const { org, source, places } = wanted;
    if (!this.#fitsSource(wanted) || isBefore(ofSource.get(source), { used: 0, position })) return null;
    const onlyQuarter = isBefore(ofOrganization.get(org), { used: this.#usedBySource(wanted), position });
    return this.#shareOf(org).ofQuarter(source, places, { onlyQuarter });
  }

  #take({ org, source, places }: Wanted, { ofAll, ofOrganization }: Grant): void {
    const share = this.#organizations.get(org) ?? this.#newShare();
    this.#organizations.set(org, share);
    share.take(source, places, ofOrganization);
    this.#all.take(org, places, ofAll);
  }

  #fitsOrganization({ org, source, places }: Wanted): boolean {
    return this.#shareOf(org).ofQuarter(source, places) !== null;
  }

  #fitsSource(wanted: Wanted): boolean {
    return wanted.source === null || this.#usedBySource(wanted) + wanted.places <= this.#placesOfSource;
  }

  #shareOf(org: string): SharedPlaces {
    return this.#organizations.get(org) ?? this.#unused;
  }

  #usedBy(org: string): number {
    return this.#all.heldBy(org);
  }

  #usedBySource({ org, source }: Wanted): number {
    return this.#shareOf(org).heldBy(source);
  }

  #wait(wanted: Wanted, signal: AbortSignal | undefined): Promise<Grant | null> {
    return new Promise((resolve) => {
      const end = (grant: Grant | null): void => {
        cancel();
        signal?.removeEventListener('abort', giveUp);
        resolve(grant);
      };
      const giveUp = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        end(null);
        this.#letInLater();
      };
      const waiter: Waiter = { ...wanted, sinceMs: this.#clock.now(), enter: end };
      const cancel = this.#clock.after(this.#waitMs, giveUp);
      if (signal?.aborted === true) return end(null);
      signal?.addEventListener('abort', giveUp);
      this.#waiting.push(waiter);
    });
  }

  #leave({ org, source, places }: Wanted, { ofAll, ofOrganization }: Grant): void {
    this.#all.giveBack(org, places, ofAll);
    const share = this.#shareOf(org);
    share.giveBack(source, places, ofOrganization);
    if (share.isUnused) this.#organizations.delete(org);
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
      const { waiter, grant } = next;
      this.#take(waiter, grant);
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
      waiter.enter(grant);
    }
  }

  /** The first waiter of the organization that uses least, and of its source that uses least, of those that may enter now; null: none may. */
  #next(): { waiter: Waiter; grant: Grant } | null {
    const kept = this.#firstKept();
    let next: { waiter: Waiter; grant: Grant } | null = null;
    for (const [position, waiter] of this.#waiting.entries()) {
      if (next !== null && !this.#usesLess(waiter, next.waiter)) continue;
      const grant = this.#grantFor(waiter, position, kept);
      if (grant !== null) next = { waiter, grant };
    }
    return next;
  }

  #usesLess(one: Wanted, other: Wanted): boolean {
    if (one.org === other.org) return this.#usedBySource(one) < this.#usedBySource(other);
    return this.#usedBy(one.org) < this.#usedBy(other.org);
  }
}

function sourceKey(org: string, source: string): string {
  return `${org} ${source}`;
}

function isBefore(first: Place | null | undefined, { used, position }: Place): boolean {
  if (first === null || first === undefined) return false;
  return first.used < used || (first.used === used && first.position < position);
}
