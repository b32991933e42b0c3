import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { redisUnavailable } from '../../redis/unavailable.ts';

export interface ApiKeyUsageOptions {
  redis: RedisClient;
  prefix: string;
  clock: Clock;
  logger: Logger;
}

const sampleMs = 60_000;
/** Where no key of the organization has been used for so long, none has a `lastUsedAt`. */
const keptSeconds = 400 * 86_400;

/** Hash of an organization: key id → milliseconds since the epoch. `RedisMessagePurger` removes it with the organization. */
export function apiKeyUsageKey(prefix: string, org: string): string {
  return `${prefix}{keyuse:${org}}`;
}

/** When API keys were last used: written at most once a minute per key and process. */
export class ApiKeyUsage {
  readonly #options: ApiKeyUsageOptions;
  readonly #writtenAtMs = new LRUCache<string, number>({ max: 10_000 });

  constructor(options: ApiKeyUsageOptions) {
    this.#options = options;
  }

  /** Records a use. Never fails and need not be waited for. */
  async touch(org: string, keyId: string): Promise<void> {
    const { redis, prefix, clock, logger } = this.#options;
    const nowMs = clock.now();
    if (nowMs - (this.#writtenAtMs.get(keyId) ?? Number.NEGATIVE_INFINITY) < sampleMs) return;
    this.#writtenAtMs.set(keyId, nowMs);
    try {
      const key = apiKeyUsageKey(prefix, org);
      await redis.multi().hset(key, keyId, nowMs).expire(key, keptSeconds).exec();
    } catch (error) {
      logger.debug({ err: error, keyId }, 'the last use of an API key was not recorded');
    }
  }

  /** Milliseconds since the epoch, a minute exact; null when never. UNAVAILABLE without Redis. */
  async lastUsedAtMs(org: string, keyId: string): Promise<number | null> {
    try {
      const value = await this.#options.redis.hget(apiKeyUsageKey(this.#options.prefix, org), keyId);
      return value === null ? null : Number(value);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  /** Forgets a key that is deleted. UNAVAILABLE without Redis. */
  async forget(org: string, keyId: string): Promise<void> {
    this.#writtenAtMs.delete(keyId);
    try {
      await this.#options.redis.hdel(apiKeyUsageKey(this.#options.prefix, org), keyId);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }
}
