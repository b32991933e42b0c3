import { webhookOrganization } from '../../core/webhook.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { shardKeys } from '../shard/shard-keys.ts';

export type StatusCounts = Record<'pending' | 'processing' | 'success' | 'failed' | 'exhausted' | 'dlq', number>;

/** By the letters that `../queue/includes/status-counts.lua` counts. */
const statuses: ReadonlyMap<string, keyof StatusCounts> = new Map([
  ['p', 'pending'],
  ['a', 'processing'],
  ['r', 'failed'],
  ['d', 'success'],
  ['q', 'dlq'],
  ['x', 'exhausted'],
  ['t', 'exhausted'],
  ['f', 'exhausted'],
]);

/** How many messages to webhook endpoints an organization has now of each status. Rejects with UNAVAILABLE. */
export async function webhookStatusCounts(
  { redis, prefix, shards }: { redis: RedisClient; prefix: string; shards: number },
  org: string,
): Promise<StatusCounts> {
  const keys = Array.from({ length: shards }, (_, shard) => shardKeys(prefix, shard).statusCounts(webhookOrganization(org)));
  const stored = await Promise.all(keys.map((key) => redis.hgetall(key))).catch(throwUnavailable);
  const counts: StatusCounts = { pending: 0, processing: 0, success: 0, failed: 0, exhausted: 0, dlq: 0 };
  for (const [letter, count] of stored.flatMap(Object.entries<string>)) {
    const status = statuses.get(letter);
    if (status !== undefined) counts[status] += Number(count);
  }
  return counts;
}
