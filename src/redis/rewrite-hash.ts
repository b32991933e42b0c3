import type { RedisClient } from './connection.ts';
import { Script } from './script.ts';
import { throwUnavailable } from './unavailable.ts';

const swapScript = new Script(new URL('./scripts/swap-field.lua', import.meta.url));

/**
 * Rewrites the values of a hash in place, each by itself, so that it can be stopped and repeated. `rewrite` returns null to keep one.
 * What somebody else changes meanwhile is left to them. Returns how many were rewritten; UNAVAILABLE without Redis.
 */
export async function rewriteHash(
  redis: RedisClient,
  key: string,
  rewrite: (field: string, value: string) => string | null,
): Promise<number> {
  let rewritten = 0;
  let cursor = '0';
  do {
    const [next, entries] = await redis.hscan(key, cursor, 'COUNT', 100).catch(throwUnavailable);
    cursor = next;
    for (let i = 0; i + 1 < entries.length; i += 2) {
      const [field = '', value = ''] = [entries[i], entries[i + 1]];
      const wanted = rewrite(field, value);
      if (wanted === null) continue;
      const reply = await swapScript.run(redis, [key], [field, value, wanted]).catch(throwUnavailable);
      if (reply === 1) rewritten++;
    }
  } while (cursor !== '0');
  return rewritten;
}
