import { defaultPool } from '../../core/default-pool.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { poolSuffix } from '../shard/pool-suffix.ts';
import { shardKeys } from '../shard/shard-keys.ts';

/** A shard in which there is work; `isFirst`: of an organization that had none there just before. */
export interface Ring {
  shard: number;
  isFirst: boolean;
}

/** The longest sleep on the doorbell, in seconds. */
export const doorbellBlockSeconds = 30;

/** Lets a worker sleep until one of the shards signals work. Owns its connection, which blocks. */
export class Doorbell {
  readonly #redis: RedisClient;
  readonly #shards: ReadonlyMap<string, number>;

  /** `shards`: of a Cluster only one; see `blockingGroups`. */
  constructor({
    redis,
    prefix,
    shards = [0],
    pool = defaultPool,
  }: { redis: RedisClient; prefix: string; shards?: readonly number[]; pool?: string }) {
    this.#redis = redis;
    this.#shards = new Map(shards.map((shard) => [`${shardKeys(prefix, shard).doorbell}${poolSuffix(pool)}`, shard]));
    // Errors reject the wait under way; the event is redundant.
    redis.on('error', () => undefined);
  }

  /** Null after 30 s of silence. Rejects when Redis is down or the doorbell was closed. */
  async wait(): Promise<Ring | null> {
    if (this.#redis.status === 'wait' || this.#redis.status === 'end') await this.#redis.connect();
    const rang = await this.#redis.blpop(...this.#shards.keys(), doorbellBlockSeconds);
    const shard = rang === null ? undefined : this.#shards.get(rang[0]);
    return shard === undefined ? null : { shard, isFirst: rang?.[1] === 'f' };
  }

  close(): void {
    this.#redis.disconnect();
  }
}
