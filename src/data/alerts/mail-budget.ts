import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { type RateLimiterOptions, takeRequest } from '../intake/rate-limit.ts';

const dayMs = 86_400_000;

/** Budget of an organization's e-mails in a day (UTC), or of links to confirm an address, over all workers; an e-mail counts once for each address. */
export class MailBudget {
  readonly #options: Pick<RateLimiterOptions, 'redis' | 'prefix' | 'clock'>;
  readonly perDay: number;
  readonly #what: 'mails' | 'confirmations';
  readonly #spent: SpentMailBudgets;

  constructor(options: Pick<RateLimiterOptions, 'redis' | 'prefix' | 'clock'>, perDay: number, what: 'mails' | 'confirmations' = 'mails') {
    this.#options = options;
    this.perDay = perDay;
    this.#what = what;
    this.#spent = new SpentMailBudgets(options);
  }

  /**
   * Takes all or none; null when too few are left, which `SpentMailBudgets` reports from then on. They can be given back. Rejects when Redis
   * does not answer.
   */
  async take(org: string, count: number): Promise<{ giveBack(): Promise<void> } | null> {
    const nowMs = this.#options.clock.now();
    const add = (more: number) => takeRequest(this.#options, `${org}:${this.#what}:${dayOf(nowMs)}`, this.perDay, more, dayMs);
    if (!(await add(count)).allowed) {
      if (this.#what === 'mails') await this.#spent.note(org, nowMs);
      return null;
    }
    return { giveBack: async () => void (await add(-count)) };
  }
}

/** The organizations that were refused e-mails, by day (UTC). Throws UNAVAILABLE without Redis. */
export class SpentMailBudgets {
  readonly #redis: RedisClient;
  readonly #prefix: string;

  constructor({ redis, prefix }: { redis: RedisClient; prefix: string }) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  async note(org: string, atMs: number): Promise<void> {
    const key = this.#key(atMs);
    await this.#redis.multi().sadd(key, org).pexpire(key, dayMs).exec().catch(throwUnavailable);
  }

  async onDayOf(atMs: number): Promise<Set<string>> {
    return new Set(await this.#redis.smembers(this.#key(atMs)).catch(throwUnavailable));
  }

  #key(atMs: number): string {
    return `${this.#prefix}{mails}:spent:${dayOf(atMs)}`;
  }
}

function dayOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10);
}
