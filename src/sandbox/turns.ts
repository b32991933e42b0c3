/** A mean above this makes an organization a slow one, and so does a job that is under way for longer. */
const slowMs = 50;
const weight = 0.2;
const mostKnown = 10_000;

interface Waiter<T> {
  item: T;
  organization: string;
}

interface Organization<T> {
  waiting: Waiter<T>[];
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

  add(organization: string, item: T): void {
    const known = this.#organizations.get(organization) ?? { waiting: [], underWay: new Set(), meanMs: 0 };
    this.#organizations.set(organization, known);
    known.waiting.push({ item, organization });
    this.#waiting += 1;
  }

  /** Takes back what has had no turn yet; answers whether it was there. */
  remove(organization: string, item: T): boolean {
    const waiting = this.#organizations.get(organization)?.waiting ?? [];
    const position = waiting.findIndex((each) => each.item === item);
    if (position < 0) return false;
    waiting.splice(position, 1);
    this.#waiting -= 1;
    return true;
  }

  /** Takes back everything that has had no turn yet. */
  clear(): T[] {
    const items = [...this.#organizations.values()].flatMap(({ waiting }) => waiting.splice(0).map(({ item }) => item));
    this.#waiting = 0;
    return items;
  }

  /** Null: nobody may begin now. */
  next(): Turn<T> | null {
    if (this.#waiting === 0 || this.#underWay >= this.#places) return null;
    const slowPlaces = Math.max(1, Math.floor(this.#places / 2));
    const mayBeSlow = this.#slowUnderWay() < slowPlaces;
    for (const [name, organization] of this.#organizations) {
      if (organization.waiting.length === 0 || (!mayBeSlow && this.#isSlow(organization))) continue;
      const waiter = organization.waiting.shift();
      if (waiter === undefined) continue;
      this.#waiting -= 1;
      // To the end of the round.
      this.#organizations.delete(name);
      this.#organizations.set(name, organization);
      return this.#begin(organization, waiter.item);
    }
    return null;
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
    if (this.#organizations.size <= mostKnown) return;
    for (const [name, { waiting, underWay }] of this.#organizations) {
      if (waiting.length > 0 || underWay.size > 0) continue;
      this.#organizations.delete(name);
      return;
    }
  }
}
