import { agreeOnShards } from '../data/membership/shard-count.ts';
import type { RedisLink } from './redis-link.ts';
import type { RoleContext } from './role-process.ts';
import { startUpQuery } from './start-up-query.ts';

/** How many shards there are; waits for Redis until the process is to stop. */
export async function agreedShards(link: RedisLink, context: RoleContext): Promise<number> {
  const { redisKeyPrefix: prefix, shards: known } = context.config;
  const agreed = await startUpQuery(context, 'the number of shards', () => agreeOnShards({ redis: link.main, prefix, known }));
  return agreed ?? known;
}
