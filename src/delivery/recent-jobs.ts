const mostKept = 256;

/** Of which organizations the last jobs were that a worker took, in all shards. */
export class RecentJobs {
  readonly #organizations: string[] = [];
  readonly #counts = new Map<string, number>();
  #next = 0;
  #busiest: string | null = null;

  add(organization: string): void {
    const oldest = this.#organizations[this.#next];
    if (oldest !== undefined) this.#count(oldest, -1);
    this.#organizations[this.#next] = organization;
    this.#next = (this.#next + 1) % mostKept;
    this.#count(organization, 1);
    if (this.#hasMost(organization)) this.#busiest = organization;
    else if (this.#busiest !== null && !this.#hasMost(this.#busiest)) this.#busiest = null;
  }

  /** The organization that had more than half of them; null: there is none. */
  get busiest(): string | null {
    return this.#busiest;
  }

  /** Some of them were of others than the busiest organization. */
  get areMixed(): boolean {
    return this.#busiest !== null && this.#counts.size > 1;
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
