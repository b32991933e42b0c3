import { PosthornError } from '../../core/errors.ts';

export const largeBodyLimits = {
  /** Bytes beyond which a body is large: what is made of it takes several times its size in memory. */
  bytes: 1024 * 1024,
  /** Requests with such a body that are carried out at a time. */
  atOnce: 4,
  /** Of one organization; others of it wait. */
  ofOrganization: 1,
  /** Of one organization, with those that wait. */
  ofOrganizationInAll: 8,
};

interface Organization {
  running: number;
  waiting: (() => void)[];
}

/** Admits requests with large bodies, a few at a time: waiting organizations are served round-robin. */
export class LargeBodies {
  /** Organizations that have some; the first one is next. */
  readonly #organizations = new Map<string, Organization>();
  #running = 0;

  /** RATE_LIMITED when too many of the organization run or wait. */
  async run<T>(organization: string, work: () => Promise<T>): Promise<T> {
    const own = this.#organizations.get(organization) ?? { running: 0, waiting: [] };
    if (own.running + own.waiting.length >= largeBodyLimits.ofOrganizationInAll)
      throw new PosthornError('RATE_LIMITED', 'Too many large requests of the organization are under way: send them one after the other.', {
        retryAfterSeconds: 5,
      });
    this.#organizations.set(organization, own);
    const begun = new Promise<void>((begin) => void own.waiting.push(begin));
    this.#begin();
    await begun;
    try {
      return await work();
    } finally {
      own.running--;
      this.#running--;
      this.#organizations.delete(organization);
      if (own.running + own.waiting.length > 0) this.#organizations.set(organization, own);
      this.#begin();
    }
  }

  #begin(): void {
    for (const [organization, own] of [...this.#organizations]) {
      if (this.#running >= largeBodyLimits.atOnce) return;
      if (own.running >= largeBodyLimits.ofOrganization) continue;
      const begin = own.waiting.shift();
      if (begin === undefined) continue;
      own.running++;
      this.#running++;
      this.#organizations.delete(organization);
      this.#organizations.set(organization, own);
      begin();
    }
  }
}
