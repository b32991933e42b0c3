import type { Clock } from '../core/clock.ts';

const mostKept = 256;
const keptMs = 10_000;

interface Taken {
  organization: string;
  atMs: number;
}

/** Of which organizations the last 256 jobs were that a worker took, in all shards, none longer than 10 s ago. */
export class RecentJobs {
  readonly #clock: Clock;
  /** A ring; `#first` is the oldest. */
  readonly #jobs: Taken[] = [];
  readonly #counts = new Map<string, number>();
  #first = 0;
  #kept = 0;
  #busiest: string | null = null;
  #last: Taken | null = null;
  /** The last one of another organization than `#last`. */
  #lastOfOthers: Taken | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(organization: string): void {
    const atMs = this.#clock.now();
    if (this.#kept === mostKept) this.#forgetOldest();
    const job = { organization, atMs };
    this.#jobs[(this.#first + this.#kept) % mostKept] = job;
    this.#kept++;
    this.#count(organization, 1);
    if (this.#hasMost(organization)) this.#busiest = organization;
    if (this.#last !== null && this.#last.organization !== organization) this.#lastOfOthers = this.#last;
    this.#last = job;
  }

  /** The organization that had more than 128 of the last 256; null: there is none. */
  get busiest(): string | null {
    const since = this.#clock.now() - keptMs;
    while (this.#kept > 0 && (this.#jobs[this.#first]?.atMs ?? 0) < since) this.#forgetOldest();
    return this.#busiest;
  }

  /** The busiest organization, while others had jobs, too, however few; null: there is none, or it is alone. */
  get busiestBesideOthers(): string | null {
    const { busiest } = this;
    const other = this.#last?.organization === busiest ? this.#lastOfOthers : this.#last;
    return busiest !== null && other !== null && other.atMs >= this.#clock.now() - keptMs ? busiest : null;
  }

  #forgetOldest(): void {
    const oldest = this.#jobs[this.#first];
    this.#first = (this.#first + 1) % mostKept;
    this.#kept--;
    if (oldest !== undefined) this.#count(oldest.organization, -1);
    if (this.#busiest !== null && !this.#hasMost(this.#busiest)) this.#busiest = null;
  }

  #hasMost(organization: string): boolean {
    return (this.#counts.get(organization) ?? 0) > mostKept / 2;
  }

  #count(organization: string, by: number): void {
    const count = (this.#counts.get(organization) ?? 0) + by;
    if (count === 0) this.#counts.delete(organization);
    else this.#counts.set(organization, count);
  }
}
