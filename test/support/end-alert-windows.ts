import type { RedisClient } from '../../src/redis/connection.ts';

/** Ends the windows of the alerts of a route: a real one that is short could end before its test has checked. */
export async function endAlertWindows(redis: RedisClient, prefix: string, routeId = 'rte_a'): Promise<void> {
  const suffix = `:al:${routeId}`;
  for (const key of await redis.keys(`${prefix}*${suffix}`)) {
    for (const field of await redis.hkeys(key)) if (/^[fsroc]w$/.test(field)) await redis.hset(key, field, 1);
    await redis.zadd(`${key.slice(0, -suffix.length)}:alerts`, 'XX', 1, routeId);
  }
}
