import { hashFields } from '../../src/data/shard/hash-fields.ts';
import type { RedisClient } from '../../src/redis/connection.ts';

/** Lets the time come at which messages of a shard expire (`includes/expiry.lua`): of all that have one, or of those that are named. Returns their keys. */
export async function expireMessages(redis: RedisClient, base: string, only?: readonly string[]): Promise<string[]> {
  const expired: string[] = [];
  const atMs = Date.now() - 1;
  for (const key of await redis.keys(`${base}m:*`)) {
    const messageKey = key.slice(base.length + 2);
    if ((await redis.hexists(key, hashFields.message.expiresMs)) === 0 || only?.includes(messageKey) === false) continue;
    await redis.hset(key, hashFields.message.expiresMs, atMs);
    await redis.zadd(`${base}exp`, 'XX', atMs, messageKey);
    expired.push(messageKey);
  }
  await redis.zadd(`${base}waiting`, 'XX', atMs, '~x');
  return expired;
}
