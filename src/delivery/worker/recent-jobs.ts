import type { Clock } from '../../core/clock.ts';
import { RecentOrganizations, recentMs } from '../../core/recent-organizations.ts';

const maxKept = 256;

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
  readonly #organizations: RecentOrganizations;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#organizations = new RecentOrganizations(clock);
  }

  add(organization: string): void {
    const atMs = this.#clock.now();
    if (this.#kept === maxKept) this.#forgetOldest();
    this.#jobs[(this.#first + this.#kept) % maxKept] = { organization, atMs };
    this.#kept++;
    this.#count(organization, 1);
    if (this.#hasMost(organization)) this.#busiest = organization;
    this.#organizations.add(organization);
  }

  /** The organization that had more than 128 of the last 256; null: there is none. */
  get busiest(): string | null {
    const since = this.#clock.now() - recentMs;
    while (this.#kept > 0 && (this.#jobs[this.#first]?.atMs ?? 0) < since) this.#forgetOldest();
    return this.#busiest;
  }

  /** The busiest organization, while others had jobs, too, however few; null: there is none, or it is alone. */
  get busiestBesideOthers(): string | null {
    const { busiest } = this;
    return busiest !== null && this.#organizations.hasOthersThan(busiest) ? busiest : null;
  }

  #forgetOldest(): void {
    const oldest = this.#jobs[this.#first];
    this.#first = (this.#first + 1) % maxKept;
    this.#kept--;
    if (oldest !== undefined) this.#count(oldest.organization, -1);
    if (this.#busiest !== null && !this.#hasMost(this.#busiest)) this.#busiest = null;
  }

  #hasMost(organization: string): boolean {
    return (this.#counts.get(organization) ?? 0) > maxKept / 2;
  }

  #count(organization: string, by: number): void {
    const count = (this.#counts.get(organization) ?? 0) + by;
    if (count === 0) this.#counts.delete(organization);
    else this.#counts.set(organization, count);
  }
}
