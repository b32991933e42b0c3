import { alertOrganization } from '../../core/alert.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { rewriteHash } from '../../redis/rewrite-hash.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { registryKeys } from '../registry/registry-keys.ts';
import { shardKeys } from '../shard/shard-keys.ts';

/** What a destination had before its attempts were counted: `<deliveries> <successes> <latency ms> <last ms>` (`../shard/includes/count.lua`). */
const withoutAttempts = /^(\d+) \d+ \d+ \d+$/;

/**
 * Gives the counters of destinations that earlier releases have written the number of attempts, which readers have taken them to have: one for each
 * delivery. Can be stopped and repeated, while the shards work. Answers how many were completed. Throws UNAVAILABLE.
 */
export async function completeCounters({ redis, prefix, shards }: { redis: RedisClient; prefix: string; shards: number }): Promise<number> {
  const organizations = await redis.hkeys(registryKeys(prefix).records('organization')).catch(throwUnavailable);
  let completed = 0;
  for (const org of organizations.flatMap((id) => [id, alertOrganization(id), webhookOrganization(id)])) {
    for (let shard = 0; shard < shards; shard++) {
      completed += await rewriteHash(redis, shardKeys(prefix, shard).counters(org), (_, counter) => {
        const deliveries = withoutAttempts.exec(counter)?.[1];
        return deliveries === undefined ? null : `${counter} ${deliveries}`;
      });
    }
  }
  return completed;
}
