import type { RedisClient } from '../redis/connection.ts';
import { shardKeys } from './shard-keys.ts';

/** The longest sleep on the doorbell, in seconds. */
export const doorbellBlockSeconds = 30;

/** Lets a worker sleep until somebody rings. Owns its connection, which blocks. */
export class Doorbell {
  readonly #redis: RedisClient;
  readonly #key: string;

  constructor({ redis, prefix, shard = 0 }: { redis: RedisClient; prefix: string; shard?: number }) {
    this.#redis = redis;
    this.#key = shardKeys(prefix, shard).doorbell;
    // Errors reject the wait under way; the event says nothing more.
    redis.on('error', () => undefined);
  }

  /** True when it rang, false after 30 s of silence. Rejects when Redis is away or the doorbell was closed. */
  async wait(): Promise<boolean> {
    if (this.#redis.status === 'wait' || this.#redis.status === 'end') await this.#redis.connect();
    return (await this.#redis.blpop(this.#key, doorbellBlockSeconds)) !== null;
  }

  close(): void {
    this.#redis.disconnect();
  }
}
