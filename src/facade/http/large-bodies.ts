import { PosthornError } from '../../core/errors.ts';
import { OpenShares } from '../../core/open-shares.ts';
import { Round } from '../../core/round.ts';

export const largeBodyLimits = {
  /** Bytes beyond which a body is large: what is made of it takes several times its size in memory. */
  bytes: 1024 * 1024,
  /** Requests with such a body that are carried out at a time. */
  atOnce: 4,
  /** Maximum for one organization; others of it wait. */
  ofOrganization: 1,
  /** Maximum for one organization, with those that wait. One credential has eight of them while it is alone; see `OpenShares`. */
  ofOrganizationInAll: 10,
};

interface Organization {
  running: number;
  /** Requests of its credentials that wait. */
  waiting: Round<() => void>;
}

/** Admits requests with large bodies, a few at a time: waiting organizations are served round-robin, and so are the credentials of each. */
export class LargeBodies {
  /** Organizations that have some; the first one is next. */
  readonly #organizations = new Map<string, Organization>();
  readonly #shares = new OpenShares({ ofOwner: largeBodyLimits.ofOrganizationInAll });
  #running = 0;

  /** RATE_LIMITED when too many of the organization run or wait, or of the credential of what is left. */
  async run<T>({ organization, credential }: { organization: string; credential: string }, work: () => Promise<T>): Promise<T> {
    if (!this.#shares.take(organization, 1, credential))
      throw new PosthornError('RATE_LIMITED', 'Too many large requests of the organization are under way: send them one after the other.', {
        retryAfterSeconds: 5,
      });
    const own = this.#organizations.get(organization) ?? { running: 0, waiting: new Round<() => void>() };
    this.#organizations.set(organization, own);
    const begun = new Promise<void>((begin) => void own.waiting.add(credential, begin));
    this.#begin();
    await begun;
    try {
      return await work();
    } finally {
      own.running--;
      this.#running--;
      this.#shares.giveBack(organization, 1, credential);
      this.#organizations.delete(organization);
      if (own.running > 0 || !own.waiting.isEmpty) this.#organizations.set(organization, own);
      this.#begin();
    }
  }

  #begin(): void {
    for (const [organization, own] of [...this.#organizations]) {
      if (this.#running >= largeBodyLimits.atOnce) return;
      if (own.running >= largeBodyLimits.ofOrganization) continue;
      const begin = own.waiting.next();
      if (begin === undefined) continue;
      own.running++;
      this.#running++;
      this.#organizations.delete(organization);
      this.#organizations.set(organization, own);
      begin();
    }
  }
}
