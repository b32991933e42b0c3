/** A mean above this makes an organization a slow one, and so does a job that is under way for longer. */
const slowMs = 50;
const weight = 0.2;
const maxKnown = 10_000;

interface Waiter<T> {
  item: T;
  bytes: number;
}

interface Organization<T> {
  waiting: Waiter<T>[];
  waitingBytes: number;
  underWay: Set<{ startedAtMs: number }>;
  meanMs: number;
}

/** A job that has its turn. Its time counts from `start`; `end` is called once. */
export interface Turn<T> {
  item: T;
  start(): void;
  end(): void;
}

/**
 * Who is next: organizations in turn, each in its own order. Those whose jobs are slow have together at most half of the places
 * (at least one), so that they do not hold up the others.
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
    return this.#organizations.get(organization)?.waiting.length ?? 0;
  }

  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  waitingBytesOf(organization: string): number {
    return this.#organizations.get(organization)?.waitingBytes ?? 0;
  }

  /** `bytes`: what the item keeps in memory while it waits. */
  add(organization: string, item: T, bytes: number): void {
    const known = this.#organizations.get(organization) ?? { waiting: [], waitingBytes: 0, underWay: new Set(), meanMs: 0 };
    this.#organizations.set(organization, known);
    known.waiting.push({ item, bytes });
    this.#waiting += 1;
    known.waitingBytes += bytes;
    this.#waitingBytes += bytes;
  }

  /** Takes back what has had no turn yet; answers whether it was there. */
  remove(organization: string, item: T): boolean {
    const known = this.#organizations.get(organization);
    const position = known?.waiting.findIndex((each) => each.item === item) ?? -1;
    return known !== undefined && position >= 0 && this.#take(known, position) !== null;
  }

  /** Takes back everything that has had no turn yet. */
  clear(): T[] {
    const items = [...this.#organizations.values()].flatMap(({ waiting }) => waiting.splice(0).map(({ item }) => item));
    for (const organization of this.#organizations.values()) organization.waitingBytes = 0;
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
      if (organization.waiting.length === 0 || (!mayBeSlow && this.#isSlow(organization))) continue;
      const waiter = this.#take(organization, 0);
      if (waiter === null) continue;
      // To the end of the round.
      this.#organizations.delete(name);
      this.#organizations.set(name, organization);
      return this.#begin(organization, waiter.item);
    }
    return null;
  }

  #take(organization: Organization<T>, position: number): Waiter<T> | null {
    const [waiter] = organization.waiting.splice(position, 1);
    if (waiter === undefined) return null;
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
    for (const [name, { waiting, underWay }] of this.#organizations) {
      if (waiting.length > 0 || underWay.size > 0) continue;
      this.#organizations.delete(name);
      return;
    }
  }
}
