import { newest } from '../shard/cursor.ts';
import { decodeEvent } from '../shard/event-text.ts';
import type { FailedSample } from '../shard/messages.ts';
import { bytes, integer, list } from '../shard/script-reply.ts';
import type { ShardReader } from '../shard/shard-reader.ts';
import { deliveryView } from './message-view.ts';

const keysPerRead = 20;

/** The newest failed messages of a route over all shards: first which ones, then these. */
export async function failedSamples(
  shards: readonly ShardReader[],
  { org, routeId, limit, payloadBytes }: { org: string; routeId: string; limit: number; payloadBytes: number },
): Promise<FailedSample[]> {
  const found = await Promise.all(
    shards.map(async (shard) => {
      const entries = await shard.entries(`i:fail:${routeId}`, 'i', { position: newest, fromMs: 0, count: limit });
      return entries.map(({ ms, key }) => ({ ms, key, shard }));
    }),
  );
  const chosen = found
    .flat()
    .sort((one, other) => other.ms - one.ms)
    .slice(0, limit);
  const samples: FailedSample[] = [];
  for (let first = 0; first < chosen.length; first += keysPerRead) {
    const byShard = Map.groupBy(chosen.slice(first, first + keysPerRead), ({ shard }) => shard);
    for (const [shard, group] of byShard) {
      const keys = group.map(({ key }) => key);
      const replies = await shard.messagesWithEvents(keys, payloadBytes);
      for (const [i, key] of keys.entries())
        samples.push(...sampleFrom(shard.shard, key, replies[i]).filter(({ delivery }) => delivery.org === org));
    }
  }
  return samples.sort((one, other) => (other.delivery.completedAtMs ?? 0) - (one.delivery.completedAtMs ?? 0));
}

/** Empty when the message is gone. */
function sampleFrom(shard: number, key: string, reply: unknown): FailedSample[] {
  if (reply === null || reply === undefined) return [];
  const [message, stored, size] = list(reply);
  const { view: delivery, lastAttempt } = deliveryView(shard, key, message);
  if (stored === undefined || stored === null) return [{ delivery, lastAttempt, event: null }];
  const { receivedAtMs, payload } = decodeEvent(bytes(stored));
  return [{ delivery, lastAttempt, event: { receivedAtMs, payload, size: integer(size) } }];
}
