import { mailConfirmationMs, type RecipientState } from '../../core/mail-confirmation.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';

/** How long a process has to send a link; one that dies meanwhile leaves it to others. */
const sendingMs = 600_000;

/** Hash of an organization: address → what its owner has said. `RedisMessagePurger` removes it with the organization. */
export function mailRecipientsKey(prefix: string, org: string): string {
  return `${prefix}{recipients:${org}}`;
}

/** Who wants the e-mails of an organization; capital letters make no other address. Throws UNAVAILABLE without Redis. */
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
    const said = await this.#redis.hmget(mailRecipientsKey(this.#prefix, org), ...fields).catch(throwUnavailable);
    return said.map((each) => (each === 'confirmed' || each === 'declined' ? each : 'waiting'));
  }

  async decide(org: string, address: string, state: 'confirmed' | 'declined'): Promise<void> {
    await this.#redis.hset(mailRecipientsKey(this.#prefix, org), address.toLowerCase(), state).catch(throwUnavailable);
  }

  /** Whether the caller may send the address a link: nobody has or does. It says then what has become of that. */
  async beginAsking(org: string, address: string): Promise<{ sent(): Promise<void>; failed(): Promise<void> } | null> {
    const key = `${mailRecipientsKey(this.#prefix, org)}:asked:${address.toLowerCase()}`;
    if ((await this.#redis.set(key, 1, 'PX', sendingMs, 'NX').catch(throwUnavailable)) === null) return null;
    return {
      sent: async () => void (await this.#redis.pexpire(key, mailConfirmationMs).catch(throwUnavailable)),
      failed: async () => void (await this.#redis.del(key).catch(throwUnavailable)),
    };
  }
}
