import { requireReadableLayout } from '../data/store-layout.ts';
import { commandConnection, type RedisClient } from '../redis/connection.ts';
import { throwUnavailable } from '../redis/unavailable.ts';
import type { Config } from './config.ts';
import { redisOf } from './redis-address.ts';

/**
 * Runs a command that is no role with a connection of its own. Throws UNAVAILABLE when Redis does not answer, and INVALID_CONFIG when a
 * later release has migrated what it holds.
 */
export async function withRedis<T>(
  config: Config,
  options: { name: string; commandTimeoutMs?: number },
  run: (redis: RedisClient) => Promise<T>,
): Promise<T> {
  const redis = commandConnection(redisOf(config), options);
  redis.on('error', () => {});
  try {
    await redis.connect().catch(throwUnavailable);
    await requireReadableLayout({ redis, prefix: config.redisKeyPrefix });
    return await run(redis);
  } finally {
    redis.disconnect();
  }
}
