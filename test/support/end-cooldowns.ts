import { hashFields } from '../../src/data/shard/hash-fields.ts';
import type { RedisClient } from '../../src/redis/connection.ts';

/** Ends the cooldowns of all open circuits of the first shard, and notifies its workers: a real one that is short could end before its test has checked. */
export async function endCooldowns(redis: RedisClient, prefix: string): Promise<void> {
  const base = `${prefix}{s0}:`;
  for (const target of await redis.smembers(`${base}broken`)) {
    await redis.hset(`${base}t:${target}`, hashFields.target.cooldownEndMs, 1);
    await redis.zadd(`${base}waiting`, 1, `!${target}`);
  }
  await redis.rpush(`${base}bell`, '1');
}
