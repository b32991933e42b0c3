import type { RedisClient } from '../../redis/connection.ts';
import { decodeEvent, type StoredEvent } from '../shard/event-text.ts';
import { recordId, recordKey } from '../shard/record-key.ts';
import type { ShardKeys } from '../shard/shard-keys.ts';
import type { Batch, BatchMember } from './delivery-queue.ts';

/** Replaces the event of a message that is a batch. */
export const batchMarker = '*';

const eventsPerRead = 100;

/** Output of `includes/batch-form.lua`; null when it is gone. */
export async function readBatch(redis: RedisClient, keys: ShardKeys, batchKey: string): Promise<Batch | null> {
  const stored = await redis.get(keys.batch(batchKey));
  if (stored === null) return null;
  const end = stored.indexOf('\n');
  const unsent = new Set(await redis.hkeys(keys.unsentOfBatch(batchKey)));
  const members = stored
    .slice(end + 1)
    .split(';')
    .flatMap((pair): BatchMember[] => {
      const [message, event, output] = pair.split(' ');
      if (message === undefined || event === undefined) return [];
      return [
        {
          messageKey: message,
          messageId: recordId('msg_', keys.shard, message),
          eventId: recordId('evt_', keys.shard, event),
          hasOutput: output === 'y',
          isUnsent: unsent.has(message),
        },
      ];
    });
  return { id: batchKey, layout: stored.slice(0, end), members };
}

/** The events of members, in their order; null for a text that is gone, or is none of an event. */
export async function readEvents(
  redis: RedisClient,
  keys: ShardKeys,
  members: readonly Pick<BatchMember, 'eventId'>[],
): Promise<(StoredEvent | null)[]> {
  const events: (StoredEvent | null)[] = [];
  for (let first = 0; first < members.length; first += eventsPerRead) {
    const some = members.slice(first, first + eventsPerRead);
    const texts = await redis.mgetBuffer(...some.map(({ eventId }) => keys.event(recordKey(eventId, keys.shard) ?? '')));
    events.push(...texts.map(readable));
  }
  return events;
}

function readable(text: Buffer | null): StoredEvent | null {
  try {
    return text === null ? null : decodeEvent(text);
  } catch {
    return null;
  }
}
