import { hash } from 'node:crypto';
import { mailboxOf, mailConfirmationMs, type RecipientState } from '../../core/mail-confirmation.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { type RateLimiterOptions, takeRequest } from '../intake/rate-limit.ts';

/** How long a process has to send a link; one that dies meanwhile leaves it to others. */
const sendingMs = 600_000;

/** Hash of an organization: address → the answer of its owner. `RedisMessagePurger` removes it with the organization. */
export function mailRecipientsKey(prefix: string, org: string): string {
  return `${prefix}{recipients:${org}}`;
}

/** Recipients that accept the e-mails of an organization; addresses are case-insensitive. Throws UNAVAILABLE without Redis. */
export class MailRecipients {
  readonly #redis: RedisClient;
  readonly #prefix: string;

  constructor({ redis, prefix }: { redis: RedisClient; prefix: string }) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  /** In the order of the addresses. */
  async states(org: string, addresses: readonly string[]): Promise<RecipientState[]> {
    if (addresses.length === 0) return [];
    const fields = addresses.map((address) => address.toLowerCase());
    const states = await this.#redis.hmget(mailRecipientsKey(this.#prefix, org), ...fields).catch(throwUnavailable);
    return states.map((each) => (each === 'confirmed' || each === 'declined' ? each : 'waiting'));
  }

  async decide(org: string, address: string, state: 'confirmed' | 'declined'): Promise<void> {
    await this.#redis.hset(mailRecipientsKey(this.#prefix, org), address.toLowerCase(), state).catch(throwUnavailable);
  }

  /** Whether the caller may send the address a link: no other has or does. The caller then reports the result. */
  async beginAsking(org: string, address: string): Promise<{ sent(): Promise<void>; failed(): Promise<void> } | null> {
    const key = `${mailRecipientsKey(this.#prefix, org)}:asked:${address.toLowerCase()}`;
    if ((await this.#redis.set(key, 1, 'PX', sendingMs, 'NX').catch(throwUnavailable)) === null) return null;
    return {
      sent: async () => void (await this.#redis.pexpire(key, mailConfirmationMs).catch(throwUnavailable)),
      failed: async () => void (await this.#redis.del(key).catch(throwUnavailable)),
    };
  }
}

/** Window in which links to a mailbox count. */
const mailboxMs = 7 * 86_400_000;

/**
 * Links to confirm an address that a mailbox gets, whatever addresses it has: of one organization, and of all together. Addresses with a tag (`ops+1@…`)
 * would else bring one person as many e-mails as there are tags.
 */
export class MailboxLinks {
  readonly #options: Pick<RateLimiterOptions, 'redis' | 'prefix' | 'clock'>;
  readonly #perOrganization: number;
  readonly #ofAll: number;

  constructor(options: Pick<RateLimiterOptions, 'redis' | 'prefix' | 'clock'>, limits: { perOrganization: number; ofAll: number }) {
    this.#options = options;
    this.#perOrganization = limits.perOrganization;
    this.#ofAll = limits.ofAll;
  }

  /** Null: the mailbox has had its links of 7 days. What is taken can be given back. Rejects when Redis does not answer. */
  async take(org: string, address: string): Promise<{ giveBack(): Promise<void> } | null> {
    const mailbox = hash('sha256', mailboxOf(address), 'hex');
    const add = (subject: string, limit: number, links: number) => takeRequest(this.#options, subject, limit, links, mailboxMs);
    const own = (links: number) => add(`${org}:mailbox:${mailbox}`, this.#perOrganization, links);
    const all = (links: number) => add(`mailbox:${mailbox}`, this.#ofAll, links);
    if (!(await own(1)).allowed) return null;
    if (!(await all(1)).allowed) {
      await own(-1);
      return null;
    }
    return { giveBack: async () => void (await Promise.all([own(-1), all(-1)])) };
  }
}
