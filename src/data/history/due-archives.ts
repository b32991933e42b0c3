import { defaultPool } from '../../core/default-pool.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { poolSuffix } from '../shard/pool-suffix.ts';
import { integer, list } from '../shard/script-reply.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';

const dueScript = new ShardScript(new URL('./archive-due.lua', import.meta.url));
/** Redis does nothing else meanwhile. */
const maxPerLook = 300;

/** Archives that wait for a worker of a pool. */
export class DueArchives {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #shards: number;
  readonly #poolSuffix: string;

  constructor({ redis, prefix, shards = 1, pool = defaultPool }: { redis: RedisClient; prefix: string; shards?: number; pool?: string }) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#shards = shards;
    this.#poolSuffix = poolSuffix(pool);
  }

  /** How many organizations of the pool have something to write now; one counts in each shard where it has. Throws UNAVAILABLE when Redis does not answer. */
  async organizationsWaiting(): Promise<number> {
    let sum = 0;
    for (let shard = 0; shard < this.#shards; shard++) {
      const { declared } = shardKeys(this.#prefix, shard);
      let hasMore = true;
      for (let passed = 0; hasMore; passed += maxPerLook) {
        const reply = await dueScript.run(this.#redis, declared, [this.#poolSuffix, passed, maxPerLook]).catch(throwUnavailable);
        const [count = 0, more] = list(reply).map(integer);
        sum += count;
        hasMore = more === 1;
      }
    }
    return sum;
  }
}
