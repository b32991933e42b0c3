import { AlertStates } from '../../src/data/alerts/alert-states.ts';
import { RedisMessageReader } from '../../src/data/history/message-reader.ts';
import type { RegistryReader } from '../../src/data/registry/registry.ts';
import { ownEvents } from '../../src/notify/own-event-payload.ts';
import type { RedisClient } from '../../src/redis/connection.ts';

export interface RecordedOwnEvent {
  id: string;
  payload: Record<string, unknown> & { data: Record<string, unknown> };
}

/** Returns the data of the own events about organizations that the shards have recorded. The records stay. */
export async function ownEventData(redis: RedisClient, prefix: string, shards = 1): Promise<Record<string, unknown>[]> {
  const states = new AlertStates({ redis, prefix });
  const logs = await Promise.all(Array.from({ length: shards }, (_, shard) => states.read(shard, 'r')));
  return logs.flatMap((log) => (log?.own ?? []).map(({ reason }) => JSON.parse(reason)));
}

/** Returns the own events that the records of the shards make, with repetitions, and removes the records. `registry`: what a worker would read. */
export async function takeOwnEvents(
  redis: RedisClient,
  { prefix, shards, registry }: { prefix: string; shards: number; registry: RegistryReader },
): Promise<RecordedOwnEvent[]> {
  const sources = { registry, messages: new RedisMessageReader({ redis, prefix, shards: () => shards }) };
  const states = new AlertStates({ redis, prefix });
  const events: RecordedOwnEvent[] = [];
  for (let shard = 0; shard < shards; shard++) {
    const log = await states.read(shard, 'r');
    for (const entry of log?.own ?? [])
      for (const { id, payload } of await ownEvents(sources, { shard, marker: log?.marker ?? '' }, entry))
        events.push({ id, payload: JSON.parse(payload.toString()) });
    await states.forget(shard, log?.own ?? []);
  }
  return events;
}
