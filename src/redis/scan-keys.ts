import { mastersOf, type RedisClient } from './connection.ts';

const keysPerStep = 500;

/** The keys that begin with `base` and match `pattern` behind it, of all servers, each once; none is missed that is there all the time. */
export async function scanKeys(redis: RedisClient, base: string, pattern: string): Promise<string[]> {
  const escaped = base.replaceAll(/[*?[\]\\^]/g, '\\$&');
  const found = new Set<string>();
  for (const server of mastersOf(redis)) {
    let cursor = '0';
    do {
      const [next, keys] = await server.scan(cursor, 'MATCH', `${escaped}${pattern}`, 'COUNT', keysPerStep);
      for (const key of keys) found.add(key);
      cursor = next;
    } while (cursor !== '0');
  }
  return [...found];
}
