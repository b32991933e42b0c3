import { globSync } from 'node:fs';
import { basename } from 'node:path';
import { registryFields } from '../../../src/data/registry/registry-keys.ts';
import { hashFields } from '../../../src/data/shard/hash-fields.ts';
import { webhookFields } from '../../../src/data/webhooks/webhook-fields.ts';
import { Script } from '../../../src/redis/script.ts';
import type { RedisServer } from '../../../test/support/redis.ts';

const folder = new URL('../../../src/data/', import.meta.url);
const slowMs = 5;
const noticedMs = 1;
const tables = { ...hashFields, ...registryFields, ...webhookFields };

/** The commands of Redis that took the longest, each named as its file where it is a script. */
export interface SlowScripts {
  /** How many scripts took more than 5 ms. */
  slow: number;
  /** Per command the longest one in ms, the longest first; what took less than 1 ms is left out. */
  longest: [name: string, ms: number][];
}

/** From now on; what was noticed before is forgotten. */
export async function watchSlowScripts({ client }: RedisServer): Promise<() => Promise<SlowScripts>> {
  const names = new Map(
    globSync('*/*.lua', { cwd: folder }).map((name) => [new Script(new URL(name, folder), tables).sha, basename(name, '.lua')]),
  );
  await client.config('SET', 'slowlog-log-slower-than', noticedMs * 1000);
  await client.config('SET', 'slowlog-max-len', 100_000);
  await client.slowlog('RESET');
  return async () => {
    await client.config('SET', 'slowlog-log-slower-than', -1);
    const entries = (await client.slowlog('GET', -1)) as [number, number, number, string[]][];
    const longest = new Map<string, number>();
    for (const [, , microseconds, [command = '', sha = '']] of entries) {
      // Our own, which forgets what was noticed before.
      if (command === 'slowlog') continue;
      const name = names.get(sha) ?? command;
      longest.set(name, Math.max(longest.get(name) ?? 0, microseconds / 1000));
    }
    const slow = entries.filter(([, , microseconds, [, sha = '']]) => names.has(sha) && microseconds > slowMs * 1000).length;
    return { slow, longest: [...longest].sort(([, one], [, other]) => other - one) };
  };
}
