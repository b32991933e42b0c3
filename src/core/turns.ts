import { accountOf } from './account.ts';

/** A mean above this makes an organization a slow one, and so does a job that is under way for longer. */
const slowMs = 50;
const weight = 0.2;
const maxKnown = 10_000;

interface Waiter<T> {
  item: T;
  bytes: number;
}

interface Organization<T> {
  /** By its parts; the first one is next. */
  waiting: Map<string, Waiter<T>[]>;
  waitingCount: number;
  waitingBytes: number;
  underWay: Set<{ startedAtMs: number }>;
  meanMs: number;
}

/** Whose job it is. */
export interface TurnOwner {
  organization: string;
  /** Of the organization, such as a source or a route. Default: one for all. */
  part?: string;
}

/** A job that has its turn. Its time counts from `start`; `end` is called once. */
export interface Turn<T> {
  item: T;
  start(): void;
  end(): void;
}

/**
 * Who is next: organizations in turn, with their webhooks and alerts, and the parts of each (its sources, or its routes) in turn, each part in its own order.
 * Organizations whose jobs are slow have together at most half of the places (at least one), so that they do not hold up the others.
 */
export class Turns<T> {
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

  waitingOfPart({ organization, part = '' }: TurnOwner): number {
    return this.#organizations.get(accountOf(organization))?.waiting.get(part)?.length ?? 0;
  }

  /** `bytes`: what the item keeps in memory while it waits. */
  add({ organization, part = '' }: TurnOwner, item: T, bytes: number): void {
    const account = accountOf(organization);
    const known = this.#organizations.get(account) ?? {
      waiting: new Map(),
      waitingCount: 0,
      waitingBytes: 0,
      underWay: new Set(),
      meanMs: 0,
    };
    this.#organizations.set(account, known);
    const own = known.waiting.get(part);
    if (own === undefined) known.waiting.set(part, [{ item, bytes }]);
    else own.push({ item, bytes });
    known.waitingCount += 1;
    this.#waiting += 1;
    known.waitingBytes += bytes;
    this.#waitingBytes += bytes;
  }

  /** Takes back what has had no turn yet; answers whether it was there. */
  remove({ organization, part = '' }: TurnOwner, item: T): boolean {
    const known = this.#organizations.get(accountOf(organization));
    const position = known?.waiting.get(part)?.findIndex((each) => each.item === item) ?? -1;
    return known !== undefined && position >= 0 && this.#take(known, part, position) !== null;
  }

  /** Takes back everything that has had no turn yet. */
  clear(): T[] {
    const items: T[] = [];
    for (const organization of this.#organizations.values()) {
      for (const waiters of organization.waiting.values()) items.push(...waiters.map(({ item }) => item));
      organization.waiting.clear();
      organization.waitingCount = 0;
      organization.waitingBytes = 0;
    }
    this.#waiting = 0;
    this.#waitingBytes = 0;
    return items;
  }

  /** Null: nobody may begin now. */
  next(): Turn<T> | null {
    if (this.#waiting === 0 || this.#underWay >= this.#places) return null;
    const slowPlaces = Math.max(1, Math.floor(this.#places / 2));
    const mayBeSlow = this.#slowUnderWay() < slowPlaces;
    for (const [name, organization] of this.#organizations) {
      const [part] = organization.waiting.keys();
      if (part === undefined || (!mayBeSlow && this.#isSlow(organization))) continue;
      const waiter = this.#take(organization, part, 0);
      if (waiter === null) continue;
      toTheEnd(organization.waiting, part);
      toTheEnd(this.#organizations, name);
      return this.#begin(organization, waiter.item);
    }
    return null;
  }

  #take(organization: Organization<T>, part: string, position: number): Waiter<T> | null {
    const own = organization.waiting.get(part) ?? [];
    const [waiter] = own.splice(position, 1);
    if (waiter === undefined) return null;
    if (own.length === 0) organization.waiting.delete(part);
    organization.waitingCount -= 1;
    this.#waiting -= 1;
    organization.waitingBytes -= waiter.bytes;
    this.#waitingBytes -= waiter.bytes;
    return waiter;
  }

  #begin(organization: Organization<T>, item: T): Turn<T> {
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

/** Of the round. */
function toTheEnd<V>(round: Map<string, V>, name: string): void {
  const value = round.get(name);
  if (value === undefined) return;
  round.delete(name);
  round.set(name, value);
}
