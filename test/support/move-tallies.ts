import type { RedisClient } from '../../src/redis/connection.ts';

const sinceMs = Date.now();
const periodMs = 300_000;

/** As if what an organization has counted since the suite began had happened in a period of five minutes before that (number since 1970). */
export async function moveTallies(redis: RedisClient, base: string, org: string, period: number): Promise<void> {
  for (const name of await redis.smembers(`${base}st:${org}:t`)) {
    const [at = '', group = ''] = name.split(':');
    if (Number(at) < Math.floor(sinceMs / periodMs)) continue;
    const moved = `${period}:${group}`;
    for (const [field, count] of Object.entries(await redis.hgetall(`${base}st:${org}:t${name}`)))
      await redis.hincrby(`${base}st:${org}:t${moved}`, field, Number(count));
    await redis.unlink(`${base}st:${org}:t${name}`);
    await redis.srem(`${base}st:${org}:t`, name);
    await redis.zrem(`${base}tallies`, `${org} ${name}`);
    await redis.sadd(`${base}st:${org}:t`, moved);
    await redis.zadd(`${base}tallies`, period * periodMs, `${org} ${moved}`);
  }
}
