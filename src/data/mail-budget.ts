import { type RateLimiterOptions, takeRequest } from './rate-limit.ts';

const dayMs = 86_400_000;

/** What an organization has of e-mails in a day (UTC), over all workers; an e-mail counts once for each address. */
export class MailBudget {
  readonly #options: Pick<RateLimiterOptions, 'redis' | 'prefix' | 'clock'>;
  readonly perDay: number;

  constructor(options: Pick<RateLimiterOptions, 'redis' | 'prefix' | 'clock'>, perDay: number) {
    this.#options = options;
    this.perDay = perDay;
  }

  /** Takes all or none; null when there are not as many left. What is taken can be given back. Rejects when Redis does not answer. */
  async take(org: string, count: number): Promise<{ giveBack(): Promise<void> } | null> {
    const day = new Date(this.#options.clock.now()).toISOString().slice(0, 10);
    const add = (more: number) => takeRequest(this.#options, `${org}:mails:${day}`, this.perDay, more, dayMs);
    if (!(await add(count)).allowed) return null;
    return { giveBack: async () => void (await add(-count)) };
  }
}
