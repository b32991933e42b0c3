import { AlertStates } from '../../src/data/alerts/alert-states.ts';
import { type OwnEventSources, ownEvents } from '../../src/notify/own-event.ts';
import type { RedisClient } from '../../src/redis/connection.ts';

export interface NotedEvent {
  id: string;
  payload: Record<string, unknown> & { data: Record<string, unknown> };
}

/** The data of the own events of organizations themselves that are noted in shard 0; the notes stay. */
export async function notedData(redis: RedisClient, prefix: string): Promise<Record<string, unknown>[]> {
  const log = await new AlertStates({ redis, prefix }).read(0, 'r');
  return (log?.own ?? []).map(({ reason }) => JSON.parse(reason));
}

/** The own events that the notes of the shards make, with repetitions; the notes are gone then. */
export async function takeNotedEvents(
  redis: RedisClient,
  { prefix, shards, ...sources }: OwnEventSources & { prefix: string; shards: number },
): Promise<NotedEvent[]> {
  const states = new AlertStates({ redis, prefix });
  const events: NotedEvent[] = [];
  for (let shard = 0; shard < shards; shard++) {
    const log = await states.read(shard, 'r');
    for (const entry of log?.own ?? [])
      for (const { id, payload } of await ownEvents(sources, { shard, marker: log?.marker ?? '' }, entry))
        events.push({ id, payload: JSON.parse(payload.toString()) });
    await states.forget(shard, log?.own ?? []);
  }
  return events;
}
