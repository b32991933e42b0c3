import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';

/** Hash of an organization: channel id → milliseconds since the epoch. `RedisMessagePurger` removes it with the organization. */
export function lastNotifiedKey(prefix: string, org: string): string {
  return `${prefix}{notified:${org}}`;
}

/** When the last alert arrived at a notification channel. Throws UNAVAILABLE without Redis. */
export class LastNotified {
  readonly #redis: RedisClient;
  readonly #prefix: string;

  constructor({ redis, prefix }: { redis: RedisClient; prefix: string }) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  async note(org: string, channelId: string, atMs: number): Promise<void> {
    await this.#redis.hset(lastNotifiedKey(this.#prefix, org), channelId, atMs).catch(throwUnavailable);
  }

  /** Milliseconds since the epoch; null: never. */
  async atMs(org: string, channelId: string): Promise<number | null> {
    const value = await this.#redis.hget(lastNotifiedKey(this.#prefix, org), channelId).catch(throwUnavailable);
    return value === null ? null : Number(value);
  }

  /** Forgets a channel that is deleted. */
  async forget(org: string, channelId: string): Promise<void> {
    await this.#redis.hdel(lastNotifiedKey(this.#prefix, org), channelId).catch(throwUnavailable);
  }
}
