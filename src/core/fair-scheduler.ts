import { accountOf } from './account.ts';
import { Round } from './round.ts';

/** A mean above this makes an organization a slow one, and so does a job that is under way for longer. */
const slowMs = 50;
const weight = 0.2;
const maxKnown = 10_000;

interface Waiter<T> {
  item: T;
  bytes: number;
}

interface Organization<T> {
  /** Waiting jobs of its parts. */
  waiting: Round<Waiter<T>>;
  waitingCount: number;
  waitingBytes: number;
  underWay: Set<{ startedAtMs: number }>;
  meanMs: number;
}

/** Owner of the job. */
export interface JobOwner {
  organization: string;
  /** Part of the organization, such as a source or a route. Default: one for all. */
  part?: string;
}

/** A running job. Its time counts from `start`; `end` is called once. */
export interface ScheduledJob<T> {
  item: T;
  start(): void;
  end(): void;
}

/**
 * Schedules round-robin over organizations, with their webhooks and alerts, and within each over its parts (its sources, or its routes), each part in order.
 * Organizations whose jobs are slow share at most half of the slots (at least one), so that they do not hold up the others.
 */
export class FairScheduler<T> {
  readonly #places: number;
  readonly #now: () => number;
  readonly #organizations = new Map<string, Organization<T>>();
  #waiting = 0;
  #waitingBytes = 0;
  #underWay = 0;

  constructor(places: number, now: () => number) {
    this.#places = places;
    this.#now = now;
  }

  get waiting(): number {
    return this.#waiting;
  }

  waitingOf(organization: string): number {
    return this.#organizations.get(accountOf(organization))?.waitingCount ?? 0;
  }

  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  waitingBytesOf(organization: string): number {
    return this.#organizations.get(accountOf(organization))?.waitingBytes ?? 0;
  }

  waitingOfPart({ organization, part = '' }: JobOwner): number {
    return this.#organizations.get(accountOf(organization))?.waiting.countOf(part) ?? 0;
  }

  waitingBytesOfPart({ organization, part = '' }: JobOwner): number {
    const items = this.#organizations.get(accountOf(organization))?.waiting.itemsOf(part) ?? [];
    return items.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** `bytes`: what the item keeps in memory while it waits. */
  add({ organization, part = '' }: JobOwner, item: T, bytes: number): void {
    const account = accountOf(organization);
    const known = this.#organizations.get(account) ?? {
      waiting: new Round(),
      waitingCount: 0,
      waitingBytes: 0,
      underWay: new Set(),
      meanMs: 0,
    };
    this.#organizations.set(account, known);
    known.waiting.add(part, { item, bytes });
    known.waitingCount += 1;
    this.#waiting += 1;
    known.waitingBytes += bytes;
    this.#waitingBytes += bytes;
  }

  /** Removes a waiting job; returns whether it was there. */
  remove({ organization, part = '' }: JobOwner, item: T): boolean {
    const known = this.#organizations.get(accountOf(organization));
    const waiter = known?.waiting.remove(part, (each) => each.item === item);
    if (known === undefined || waiter === undefined) return false;
    this.#forget(known, waiter);
    return true;
  }

  /** Removes all waiting jobs. */
  clear(): T[] {
    const items: T[] = [];
    for (const organization of this.#organizations.values()) {
      items.push(...organization.waiting.clear().map(({ item }) => item));
      organization.waitingCount = 0;
      organization.waitingBytes = 0;
    }
    this.#waiting = 0;
    this.#waitingBytes = 0;
    return items;
  }

  /** Null: no job may begin now. */
  next(): ScheduledJob<T> | null {
    if (this.#waiting === 0 || this.#underWay >= this.#places) return null;
    const slowPlaces = Math.max(1, Math.floor(this.#places / 2));
    const mayBeSlow = this.#slowUnderWay() < slowPlaces;
    for (const [name, organization] of this.#organizations) {
      if (!mayBeSlow && this.#isSlow(organization)) continue;
      const waiter = organization.waiting.next();
      if (waiter === undefined) continue;
      this.#forget(organization, waiter);
      this.#organizations.delete(name);
      this.#organizations.set(name, organization);
      return this.#begin(organization, waiter.item);
    }
    return null;
  }

  /** It waits no more. */
  #forget(organization: Organization<T>, { bytes }: Waiter<T>): void {
    organization.waitingCount -= 1;
    this.#waiting -= 1;
    organization.waitingBytes -= bytes;
    this.#waitingBytes -= bytes;
  }

  #begin(organization: Organization<T>, item: T): ScheduledJob<T> {
    const job = { startedAtMs: this.#now() };
    organization.underWay.add(job);
    this.#underWay += 1;
    return {
      item,
      start: () => {
        job.startedAtMs = this.#now();
      },
      end: () => {
        organization.underWay.delete(job);
        this.#underWay -= 1;
        organization.meanMs = organization.meanMs * (1 - weight) + (this.#now() - job.startedAtMs) * weight;
        this.#forgetOldest();
      },
    };
  }

  #isSlow({ meanMs, underWay }: Organization<T>): boolean {
    const now = this.#now();
    return meanMs > slowMs || [...underWay].some(({ startedAtMs }) => now - startedAtMs > slowMs);
  }

  #slowUnderWay(): number {
    let count = 0;
    for (const organization of this.#organizations.values())
      if (organization.underWay.size > 0 && this.#isSlow(organization)) count += organization.underWay.size;
    return count;
  }

  /** Idle organizations are remembered for their mean alone. */
  #forgetOldest(): void {
    if (this.#organizations.size <= maxKnown) return;
    for (const [name, { waitingCount, underWay }] of this.#organizations) {
      if (waitingCount > 0 || underWay.size > 0) continue;
      this.#organizations.delete(name);
      return;
    }
  }
}
