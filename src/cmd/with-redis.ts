import { requireReadableLayout } from '../data/registry/store-layout.ts';
import { commandConnection, type RedisClient } from '../redis/connection.ts';
import { throwUnavailable } from '../redis/unavailable.ts';
import { systemClock } from '../runtime/system-clock.ts';
import type { Config } from './config.ts';
import { redisOf } from './redis-address.ts';

/** Nodes of a Cluster whose announced addresses are unreachable would be tried for ever. */
const connectingMs = 10_000;

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
    await connected(redis).catch(throwUnavailable);
    await requireReadableLayout({ redis, prefix: config.redisKeyPrefix });
    return await run(redis);
  } finally {
    redis.disconnect();
  }
}

async function connected(redis: RedisClient): Promise<void> {
  const over = new AbortController();
  const tooLate = systemClock.sleep(connectingMs, over.signal).then(() => Promise.reject(new Error('no connection')));
  await Promise.race([redis.connect(), tooLate]).finally(() => over.abort());
}
