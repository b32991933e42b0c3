import type { commandConnection } from '../../src/redis/connection.ts';
import { type Canary, found } from './canary.ts';

type Connection = ReturnType<typeof commandConnection>;

/** Reads every key; each find is listed after the name of its key. Returns the number of keys, too. */
export async function canariesInRedis(
  redis: Connection,
  canaries: readonly Canary[],
): Promise<{ keys: number; found: [string, string[]][] }> {
  // A compressed value would hide what is in it.
  await redis.call('CONFIG', 'SET', 'rdbcompression', 'no');
  const result: Awaited<ReturnType<typeof canariesInRedis>> = { keys: 0, found: [] };
  for (let cursor = '0', done = false; !done; done = cursor === '0') {
    const [next, page] = await redis.scan(cursor, 'COUNT', 500);
    cursor = next;
    for (const key of page) {
      result.keys++;
      const dump = await redis.callBuffer('DUMP', key);
      const seen = found(canaries, Buffer.concat([Buffer.from(key), Buffer.isBuffer(dump) ? dump : Buffer.alloc(0)]));
      if (seen.length > 0) result.found.push([key, seen]);
    }
  }
  return result;
}
