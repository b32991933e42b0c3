import { newTimedId } from '../../src/core/ids.ts';
import type { NewEvent } from '../../src/data/shard/messages.ts';
import { newEvent } from './new-event.ts';
import type { RecordRegistry } from './record-registry.ts';
import { destinationRecord, routeRecord } from './records.ts';

/** Puts a destination into each shard, and a route to all of them; each call of the result is another event for them. */
export function destinationPerShard(registry: RecordRegistry, shards: number, urlOf: (shard: number) => string): () => NewEvent {
  const destinations = Array.from({ length: shards }, (_, shard) => ({ id: `dst_${shard}`, shard }));
  for (const { id, shard } of destinations) registry.put('destination', destinationRecord({ url: urlOf(shard) }, { id, shard }));
  registry.put('route', routeRecord({ destinations }));
  return () => {
    const nowMs = Date.now();
    const targets = destinations.map(({ id, shard }) => ({
      messageId: newTimedId('msg_', shard, nowMs),
      routeId: 'rte_a',
      destinationId: id,
      shard,
      maxAttempts: 3,
    }));
    return newEvent({ id: newTimedId('evt_', 0, nowMs), targets });
  };
}
