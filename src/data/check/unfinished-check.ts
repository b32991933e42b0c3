import type { RedisClient } from '../../redis/connection.ts';
import { scanKeys } from '../../redis/scan-keys.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { batchMarker } from '../queue/batch-reply.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { list, text } from '../shard/script-reply.ts';
import { type ShardKeys, shardBase, shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';
import { type AccountMismatch, compareFinished, type ShardConnection } from './finished-check.ts';

const checkScript = new ShardScript(new URL('./unfinished-check.lua', import.meta.url));
const eventsPerStep = 100;
const messagesPerStep = 500;

/** The subject of wrong unfinished bytes: an event (its key), or an account. */
export type WrongBytes = { event: string; complaint: string } | AccountMismatch;

/**
 * Compares a shard's unfinished events (`../queue/includes/unfinished-state.lua`) with its records, or corrects them; `messages`: the keys of the messages of
 * each event. Returns the errors. An event whose messages have changed is skipped.
 */
export async function compareUnfinished(
  { redis, prefix, shard }: ShardConnection,
  messages: ReadonlyMap<string, readonly string[]>,
  mode: 'check' | 'mend',
): Promise<WrongBytes[]> {
  const keys = shardKeys(prefix, shard);
  const wrong: WrongBytes[] = [];
  const events = [...new Set([...messages.keys(), ...(await storedEvents(redis, keys))])];
  for (let first = 0; first < events.length; first += eventsPerStep) {
    const args = events.slice(first, first + eventsPerStep).flatMap((event) => [event, (messages.get(event) ?? []).join(' ')]);
    for (const [event = '', stored, holds] of rows(await checkScript.run(redis, keys.declared, [mode, ...args])))
      wrong.push({ event, complaint: `has ${holds} unfinished parts, and ${stored} is stored` });
  }
  for (const [account = '', stored, right] of rows(await checkScript.run(redis, keys.declared, [mode])))
    wrong.push({ account, complaint: `has ${right} unfinished bytes in shard ${shard}, and ${stored} are stored` });
  return wrong;
}

/** Counts again what is unfinished, and the finished bytes of accounts, while the shards work. Can be stopped and repeated. Returns how many figures were corrected. Throws UNAVAILABLE. */
export async function recountUnfinished({
  redis,
  prefix,
  shards,
}: {
  redis: RedisClient;
  prefix: string;
  shards: number;
}): Promise<number> {
  let corrected = 0;
  for (let shard = 0; shard < shards; shard++) {
    const messages = await messagesOfEvents({ redis, prefix, shard }).catch(throwUnavailable);
    corrected += (await compareUnfinished({ redis, prefix, shard }, messages, 'mend').catch(throwUnavailable)).length;
    corrected += (await compareFinished({ redis, prefix, shard }, 'mend').catch(throwUnavailable)).length;
  }
  return corrected;
}

async function messagesOfEvents({ redis, prefix, shard }: ShardConnection): Promise<Map<string, string[]>> {
  const base = shardBase(prefix, shard);
  const found = new Map<string, string[]>();
  const keys = await scanKeys(redis, base, 'm:*');
  for (let first = 0; first < keys.length; first += messagesPerStep) {
    const some = keys.slice(first, first + messagesPerStep);
    const events = await Promise.all(some.map((key) => redis.hget(key, hashFields.message.event)));
    for (const [i, event] of events.entries()) {
      if (event === null || event === batchMarker) continue;
      const id = some[i]?.slice(base.length + 2) ?? '';
      const others = found.get(event);
      if (others === undefined) found.set(event, [id]);
      else others.push(id);
    }
  }
  return found;
}

async function storedEvents(redis: RedisClient, keys: ShardKeys): Promise<string[]> {
  const found: string[] = [];
  for (let cursor = '0'; ; ) {
    const [next, pairs] = await redis.hscan(keys.unfinishedEvents, cursor, 'COUNT', messagesPerStep);
    found.push(...pairs.filter((_, i) => i % 2 === 0));
    if (next === '0') return found;
    cursor = next;
  }
}

function rows(reply: unknown): string[][] {
  return list(reply).map((row) => list(row).map((each) => (typeof each === 'number' ? String(each) : text(each))));
}
