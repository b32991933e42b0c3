import type { MigrationStep } from '../../src/cmd/migrate.ts';
import type { RedisClient } from '../../src/redis/connection.ts';
import { scanKeys } from '../../src/redis/scan-keys.ts';

// A layout that never was: messages have their number of parts in the field `older`, in that of today as text in `newer`.
const bringOne = `
  local parts = redis.call('HGET', KEYS[1], 'older')
  if not parts then
    return 0
  end
  redis.call('HSET', KEYS[1], 'newer', parts .. ' parts')
  redis.call('HDEL', KEYS[1], 'older')
  return 1`;

/** A step of a migration, as a release would bring it. */
export const fromOlderLayout: MigrationStep = async ({ redis, prefix, shards }) => {
  let moved = 0;
  for (const key of await messageKeys({ redis, prefix, shards })) moved += Number(await redis.eval(bringOne, 1, key));
  return `${moved} messages brought from the older layout`;
};

interface Store {
  redis: RedisClient;
  prefix: string;
  shards: number;
}

export async function messageKeys({ redis, prefix, shards }: Store): Promise<string[]> {
  const found: string[] = [];
  for (let shard = 0; shard < shards; shard++) found.push(...(await scanKeys(redis, `${prefix}{s${shard}}:`, 'm:*')));
  return found.sort();
}

/** Gives the messages of the store the form of the older layout, and the store its number. */
export async function makeOlder(store: Store, olderLayout: number): Promise<void> {
  const keys = await messageKeys(store);
  for (const [at, key] of keys.entries()) await store.redis.hset(key, 'older', String(at + 1));
  await store.redis.set(`${store.prefix}{cfg}:layout`, String(olderLayout));
}

/** How many messages are in the form of each layout. */
export async function forms(store: Store): Promise<{ older: number; newer: number }> {
  const found = { older: 0, newer: 0 };
  for (const key of await messageKeys(store)) {
    const [older, newer] = await store.redis.hmget(key, 'older', 'newer');
    if (older !== null) found.older++;
    if (/^\d+ parts$/.test(newer ?? '')) found.newer++;
  }
  return found;
}
