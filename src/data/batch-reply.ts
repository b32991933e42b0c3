import type { RedisClient } from '../redis/connection.ts';
import type { Batch } from './delivery-queue.ts';
import { decodeEvent, type StoredEvent } from './event-text.ts';
import { recordId } from './record-key.ts';
import type { ShardKeys } from './shard-keys.ts';

const eventsPerRead = 100;

/** What `includes/batch-form.lua` wrote, with the texts of its events; null when it is gone. */
export async function readBatch(redis: RedisClient, keys: ShardKeys, batchKey: string): Promise<Batch | null> {
  const stored = await redis.get(keys.batch(batchKey));
  if (stored === null) return null;
  const end = stored.indexOf('\n');
  const members = stored
    .slice(end + 1)
    .split(';')
    .flatMap((pair) => {
      const [message, event, output] = pair.split(' ');
      return message === undefined || event === undefined ? [] : [{ message, event, hasOutput: output === 'y' }];
    });
  const unsent = new Set(await redis.hkeys(keys.unsentOfBatch(batchKey)));
  const wanted = [...new Set(members.map(({ event }) => event))];
  const events = new Map<string, StoredEvent | null>();
  for (let first = 0; first < wanted.length; first += eventsPerRead) {
    const some = wanted.slice(first, first + eventsPerRead);
    const texts = await redis.mgetBuffer(...some.map((event) => keys.event(event)));
    for (const [i, event] of some.entries()) events.set(event, readable(texts[i] ?? null));
  }
  return {
    id: batchKey,
    layout: stored.slice(0, end),
    members: members.map(({ message, event, hasOutput }) => ({
      messageKey: message,
      hasOutput,
      isUnsent: unsent.has(message),
      messageId: recordId('msg_', keys.shard, message),
      eventId: recordId('evt_', keys.shard, event),
      event: events.get(event) ?? null,
    })),
  };
}

function readable(text: Buffer | null): StoredEvent | null {
  try {
    return text === null ? null : decodeEvent(text);
  } catch {
    return null;
  }
}
