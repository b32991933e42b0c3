import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { crashAtEveryCommand } from '../../../test/support/crashing-client.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { carryOn, replayRecord, startReplayWorld } from '../../../test/support/replays.ts';
import { newTimedId } from '../../core/ids.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { checkShards } from '../check/shard-check.ts';
import type { EventRouting } from './event-originals.ts';

const prefix = 'test:';
let world: Awaited<ReturnType<typeof startReplayWorld>>;
let number = 0;

beforeAll(async () => {
  world = await startReplayWorld(prefix);
});
afterAll(() => world.redis.stop());
beforeEach(() => world.empty());

/** The routes of today send each event to a destination in each shard. */
const routing: EventRouting = {
  targets: async () => [0, 1].map((shard) => ({ routeId: 'rte_a', destinationId: `dst_${shard}`, shard, maxAttempts: 2 })),
  target: async () => ({ isEnabled: true, isOrdered: false, maxAttempts: 2 }),
};
const parts = (client: RedisClient = world.redis.client, changes: Partial<EventRouting> = {}) =>
  world.parts(client, { routing: { ...routing, ...changes } });
const ofEvents = (changes: Parameters<typeof replayRecord>[0] = {}) =>
  replayRecord({ what: 'events', filter: { statuses: ['no_routes', 'filtered'] }, identity: `events-${++number}`, ...changes });

/** Events that have reached nothing; their ids. */
async function unreached(count: number, changes: Parameters<typeof newEvent>[0] = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    const receivedAtMs = Date.now() - 1000;
    const event = newEvent({ id: newTimedId('evt_', i % 2, receivedAtMs), receivedAtMs, targets: [], ...changes });
    ids.push(event.id);
    await world.acceptor.accept(event);
  }
  // Only what was stored in an earlier millisecond is seen.
  await sleep(2);
  return ids;
}

async function toTheEnd(record: ReturnType<typeof ofEvents>, client?: RedisClient): Promise<void> {
  const { steps } = parts(client);
  while ((await carryOn(steps, record, { most: 2 })) !== 'ended') await world.endAll();
}

const deliveries = async () => (await world.reader.deliveries('org_a', {}, { limit: 100 })).items;

test('a replay of events is completed with exact counts when its process dies after any of its commands', async () => {
  let record = ofEvents();
  await crashAtEveryCommand(world.redis.client, 'after', {
    prepare: async () => {
      record = ofEvents();
      await world.empty();
      await unreached(2);
    },
    work: (client) => toTheEnd(record, client),
    look: async () => {
      await toTheEnd(record);
      expect(await world.runOf(record)).toMatchObject({ phase: 'Succeeded', queued: 4, skipped: {}, delivered: 4, failed: 0 });
      expect((await deliveries()).map(({ destinationId }) => destinationId).sort()).toEqual(['dst_0', 'dst_0', 'dst_1', 'dst_1']);
      expect((await checkShards({ redis: world.redis.client, prefix, shards: world.shards })).findings).toEqual([]);
    },
  });
});

test('events of two destinations and two sources are sent to these alone, as the dry run counts', async () => {
  const routes = ['rte_a', 'rte_b', 'rte_c'].map((routeId, i) => ({ routeId, destinationId: `dst_${i}`, shard: i % 2, maxAttempts: 2 }));
  const asked: unknown[] = [];
  const changes: Partial<EventRouting> = {
    targets: async (_, routeId) => {
      asked.push(routeId);
      return routes;
    },
  };
  for (const sourceId of ['src_a', 'src_b', 'src_c']) await unreached(1, { sourceId });
  const filter = {
    statuses: ['no_routes'],
    sourceId: ['src_a', 'src_b'],
    routeId: ['rte_a', 'rte_b', 'rte_c'],
    destinationId: ['dst_0', 'dst_2'],
  };
  const end = async (record: ReturnType<typeof ofEvents>): Promise<void> => {
    const { steps } = parts(world.redis.client, changes);
    while ((await carryOn(steps, record)) !== 'ended') await world.endAll();
  };
  const counted = ofEvents({ filter, isDryRun: true });
  await end(counted);
  expect(await world.runOf(counted)).toMatchObject({ plan: { candidates: 4, targets: 2 }, queued: 0 });
  const record = ofEvents({ filter });
  await end(record);
  expect(await world.runOf(record)).toMatchObject({ queued: 4, delivered: 4, skipped: {} });
  expect((await deliveries()).map(({ destinationId }) => destinationId).sort()).toEqual(['dst_0', 'dst_0', 'dst_2', 'dst_2']);
  expect(asked).not.toContainEqual(undefined);
});

test('only events that reached nothing are sent, never what the replay itself has made', async () => {
  const [none = '', filtered = ''] = [...(await unreached(1)), ...(await unreached(1, { filteredRoutes: ['rte_b'] }))];
  await world.endedMessages([0]);
  const record = ofEvents();
  const { steps } = parts();
  // A transform holds back all: what was made is filtered, too.
  while ((await carryOn(steps, record)) !== 'ended') await world.endAll({ type: 'unsent', status: 'filtered', reason: null, tookMs: 1 });
  expect(await world.runOf(record)).toMatchObject({ queued: 4, endedOtherwise: 4 });
  const repeated = async () =>
    (await world.reader.events('org_a', {}, { limit: 100 })).items.flatMap(({ duplicateOf }) => duplicateOf ?? []);
  expect((await repeated()).sort()).toEqual([none, none, filtered, filtered].sort());
  // Created events are filtered by their transform, and have reached a route.
  const another = ofEvents();
  await sleep(2);
  while ((await carryOn(parts().steps, another)) !== 'ended') await world.endAll();
  expect(await world.runOf(another)).toMatchObject({ queued: 4, delivered: 4 });
  expect((await repeated()).sort()).toEqual([none, none, none, none, filtered, filtered, filtered, filtered].sort());
});

test('a page ends with the event that fills it, and the next one continues behind it', async () => {
  await unreached(8, { payload: Buffer.from(JSON.stringify({ text: 'x'.repeat(900_000) })) });
  const looked: string[] = [];
  const large: Partial<EventRouting> = {
    targets: async (event, routeId, read) => {
      looked.push((await read())?.id ?? '');
      return routing.targets(event, routeId, read);
    },
  };
  const record = ofEvents({ isDryRun: true });
  const { steps } = parts(world.redis.client, large);
  const counts = [0];
  for (let outcome = 'progress'; outcome === 'progress'; counts.push(looked.length))
    ({ outcome } = await steps.advance(record, { most: 100, monthlyMessages: null }));
  // A page ends with its time, too: on a slow machine it may have less.
  expect(Math.max(...counts.map((count, i) => count - (counts[i - 1] ?? 0)))).toBeLessThanOrEqual(4);
  expect([looked.length, new Set(looked).size]).toEqual([8, 8]);
  expect(await world.runOf(record)).toMatchObject({ phase: 'Succeeded', plan: { candidates: 16 } });
});

test('events count against the month in which they are sent, and wait when it is full', async () => {
  await unreached(2);
  const record = ofEvents();
  const { steps } = parts();
  expect(await carryOn(steps, record, { monthlyMessages: 3 })).toBe('idle');
  expect(await world.runOf(record)).toMatchObject({ queued: 2, waiting: { reason: 'QuotaReached' } });
  expect(await deliveries()).toHaveLength(2);
});

test('the month counts as full when it does not permit all targets of an event', async () => {
  await unreached(3);
  const percents: (number | undefined)[] = [];
  const { steps } = world.parts(world.redis.client, {
    routing,
    quotaSteps: { reached: async (step) => void percents.push(step?.percent) },
  });
  expect(await carryOn(steps, ofEvents(), { monthlyMessages: 5 })).toBe('idle');
  expect(await deliveries()).toHaveLength(4);
  expect(percents.at(-1)).toBe(100);
});

test('an event is not sent to a target that sends in order', async () => {
  await unreached(2);
  const target: EventRouting['target'] = async (_org, _routeId, destinationId) => ({
    isEnabled: true,
    isOrdered: destinationId === 'dst_0',
    maxAttempts: 2,
  });
  const record = ofEvents();
  const { steps } = parts(world.redis.client, { target });
  while ((await carryOn(steps, record)) !== 'ended') await world.endAll();
  expect(await world.runOf(record)).toMatchObject({ phase: 'Succeeded', queued: 2, delivered: 2, skipped: { target_ordered: 2 } });
});

test('an event is skipped whose payload is gone, or whose route is', async () => {
  await unreached(2);
  const [gone, pruned] = [ofEvents(), ofEvents()];
  expect(await carryOn(parts(world.redis.client, { target: async () => null }).steps, gone)).toBe('ended');
  expect(await world.runOf(gone)).toMatchObject({ phase: 'Succeeded', queued: 0, skipped: { target_not_found: 4 } });
  let judged = 0;
  const prunes: Partial<EventRouting> = {
    targets: async (...args) => {
      // In the plan each event is evaluated once.
      if (++judged > 2) for (const key of await world.redis.client.keys(`${prefix}{s*}:e:*`)) await world.redis.client.del(key);
      return routing.targets(...args);
    },
  };
  expect(await carryOn(parts(world.redis.client, prunes).steps, pruned, { most: 1 })).toBe('ended');
  expect(await world.runOf(pruned)).toMatchObject({ phase: 'Succeeded', queued: 0, skipped: { payload_not_found: 2 } });
});

test('no more than 50 messages of events are open at a time', async () => {
  await unreached(40);
  const record = ofEvents();
  expect(await carryOn(parts().steps, record)).toBe('idle');
  expect(await world.runOf(record)).toMatchObject({ queued: 50 });
  await toTheEnd(record);
  expect(await world.runOf(record)).toMatchObject({ phase: 'Succeeded', queued: 80, delivered: 80 });
});
