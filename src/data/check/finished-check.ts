import type { RedisClient } from '../../redis/connection.ts';
import { scanKeys } from '../../redis/scan-keys.ts';
import { fields } from '../shard/script-reply.ts';
import { shardBase, shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';

const script = new ShardScript(new URL('./unfinished-check.lua', import.meta.url));
const eventsPerStep = 200;

export interface ShardConnection {
  redis: RedisClient;
  prefix: string;
  shard: number;
}

export interface AccountMismatch {
  account: string;
  complaint: string;
}

/**
 * Compares a shard's finished bytes of accounts (`../queue/includes/unfinished-state.lua`) with its events, or corrects them. Returns the errors.
 * Skips an account if one of its events ends or is removed during the comparison.
 */
export async function compareFinished({ redis, prefix, shard }: ShardConnection, mode: 'check' | 'mend'): Promise<AccountMismatch[]> {
  const keys = shardKeys(prefix, shard);
  const base = shardBase(prefix, shard);
  const before = await redis.hgetall(keys.finishedBytes);
  const right = new Map<string, number>();
  const events = (await scanKeys(redis, base, 'e:*')).map((key) => key.slice(base.length + 2));
  for (let first = 0; first < events.length; first += eventsPerStep) {
    const reply = await script.run(redis, keys.declared, ['weigh', ...events.slice(first, first + eventsPerStep)]);
    for (const [account, bytes] of fields(reply)) right.set(account, (right.get(account) ?? 0) + Number(bytes));
  }
  const after = await redis.hgetall(keys.finishedBytes);
  const wrong = [...new Set([...right.keys(), ...Object.keys(before)])].flatMap((account) => {
    const stored = before[account] ?? '0';
    const bytes = right.get(account) ?? 0;
    return stored === (after[account] ?? '0') && Number(stored) !== bytes ? [{ account, stored, bytes }] : [];
  });
  const changes = wrong.flatMap(({ account, stored, bytes }) => [account, bytes - Number(stored)]);
  if (mode === 'mend' && changes.length > 0) await script.run(redis, keys.declared, ['correct', ...changes]);
  return wrong.map(({ account, stored, bytes }) => ({
    account,
    complaint: `has ${bytes} finished bytes in shard ${shard}, and ${stored} are stored`,
  }));
}
