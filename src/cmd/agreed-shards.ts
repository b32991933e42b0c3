import { withJitter } from '../core/backoff.ts';
import { agreeOnShards } from '../data/shard-count.ts';
import type { RedisLink } from './redis-link.ts';
import type { RoleContext } from './role-process.ts';

const retryMs = 1000;

/** How many shards there are; waits for Redis until the process is to stop. */
export async function agreedShards(link: RedisLink, { config, clock, logger, stopping }: RoleContext): Promise<number> {
  while (!stopping.aborted) {
    try {
      return await agreeOnShards({ redis: link.main, prefix: config.redisKeyPrefix, known: config.shards });
    } catch (error) {
      logger.debug({ err: error }, 'the number of shards cannot be read; trying again');
      await clock.sleep(withJitter(retryMs), stopping);
    }
  }
  return config.shards;
}
