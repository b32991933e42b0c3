import { alertOrganization } from '../core/alert.ts';
import { webhookOrganization } from '../core/webhook.ts';
import type { RedisClient } from '../redis/connection.ts';
import { Script } from '../redis/script.ts';
import { throwUnavailable } from '../redis/unavailable.ts';
import { poolMark } from './pool-mark.ts';
import { shardKeys } from './shard-keys.ts';

const setScript = new Script(new URL('./scripts/pool-set.lua', import.meta.url));

/** Which pool of workers serves an organization. */
export class OrganizationPools {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #shards: number;

  constructor({ redis, prefix, shards }: { redis: RedisClient; prefix: string; shards: number }) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#shards = shards;
  }

  /**
   * From now on workers of this pool take what the organization has, in all shards; those of another one finish what they hold. May be
   * called again. Throws UNAVAILABLE when Redis does not answer, and then some shards may know of it.
   */
  async assign(org: string, pool: string): Promise<void> {
    const args = [poolMark(pool), org, webhookOrganization(org), alertOrganization(org)];
    for (let shard = 0; shard < this.#shards; shard++)
      await setScript.run(this.#redis, shardKeys(this.#prefix, shard).declared, args).catch(throwUnavailable);
  }
}
