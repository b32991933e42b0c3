import type { RedisClient } from '../../src/redis/connection.ts';

/**
 * Makes members of a shard's set of what waits for its time (`includes/time-shares.lua`) due: all, or those that are named, which become due in
 * this order.
 */
export async function makeDue(redis: RedisClient, base: string, name: 'due' | 'exp' | 'waiting', only?: readonly string[]): Promise<void> {
  const set = `${base}${name}`;
  const members = only ?? (await redis.zrange(set, '0', '-1'));
  const firstMs = Date.now() - members.length - 1;
  const times = new Map(members.map((member, i) => [member, firstMs + i]));
  for (const key of [set, ...(await redis.keys(`${set}:*`))]) {
    const changed = (await redis.zrange(key, '0', '-1')).flatMap((member) => (times.has(member) ? [times.get(member) ?? 0, member] : []));
    if (changed.length > 0) await redis.zadd(key, 'XX', ...changed);
  }
  const turns = `${base}turns:${name}`;
  for (const account of await redis.zrange(turns, '0', '-1')) {
    const [, firstAt] = await redis.zrange(`${set}:${account}`, '0', '0', 'WITHSCORES');
    if (firstAt !== undefined) await redis.zadd(turns, 'LT', firstAt, account);
  }
}

/** Makes names due that wait for nothing any more and are in an index of `waiting` alone, which `promote` then takes out. */
export async function forgetStaleNames(redis: RedisClient, base: string, queue: { promote(): Promise<unknown> }): Promise<void> {
  const accounts = await redis.zrange(`${base}turns:waiting`, '0', '-1');
  const names = await Promise.all(accounts.map((account) => redis.zrange(`${base}waiting:${account}`, '0', '-1')));
  await makeDue(redis, base, 'waiting', names.flat());
  await queue.promote();
}
