import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { allPages } from '../../../test/support/all-pages.ts';
import { failoverSuite } from '../../../test/support/failover-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { dead, delivered, failure, settleAll } from '../../../test/support/queue-worker.ts';
import { newTimedId } from '../../core/ids.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { newest } from '../shard/cursor.ts';
import type { EventFilter, PageQuery } from '../shard/messages.ts';
import { ShardReader } from '../shard/shard-reader.ts';
import { RedisMessageReplayer } from './message-replayer.ts';

const shards = 2;
const fillers = 300;
const suite = failoverSuite({ shards });
const { prefix } = suite;

/** Accepts an event with deliveries of routes to destinations in shards, and returns its id. */
async function send(targets: readonly (readonly [routeId: string, destinationId: string, shard: number])[], filtered: string[] = []) {
  const nowMs = Date.now();
  const event = newEvent({
    id: newTimedId('evt_', 0, nowMs),
    targets: targets.map(([routeId, destinationId, shard]) => ({
      messageId: newTimedId('msg_', shard, nowMs),
      ...{ routeId, destinationId, shard, maxAttempts: 3 },
    })),
    filtered: filtered.map((routeId) => ({ routeId })),
  });
  await acceptOnly(suite.redis.client, prefix, event);
  await suite.queues.carry(0);
  // The next one is in another millisecond.
  await pause(2);
  return event.id;
}

/** Enough events of another route that the indexes of the deliveries in question are the smaller ones. */
async function fill(): Promise<void> {
  for (let i = 0; i < fillers; i++) await acceptOnly(suite.redis.client, prefix, newEvent({ destinations: [] }));
}

const list = (filter: EventFilter) => (page: PageQuery) => suite.reader.events('org_a', filter, page);
/** The list in pages of several sizes, which all have to show the same. */
async function listed(filter: EventFilter): Promise<string[]> {
  const [first = [], ...others] = await Promise.all([1, 2, 100].map((limit) => allPages(list(filter), limit)));
  for (const other of others) expect(other).toEqual(first);
  return first.map(({ id }) => id);
}

describe('a list of events by their deliveries', () => {
  test('a list of events by their deliveries has an event once, however many of its deliveries it may show, and in whatever shards they are', async () => {
    const one = await send([
      ['rte_a', 'dst_a', 0],
      ['rte_a', 'dst_b', 0],
      ['rte_b', 'dst_c', 1],
    ]);
    const two = await send([['rte_b', 'dst_c', 1]], ['rte_a', 'rte_c']);
    const three = await send([
      ['rte_a', 'dst_c', 1],
      ['rte_a', 'dst_a', 0],
    ]);
    await fill();
    expect(await listed({ delivery: { destinationId: 'dst_a' } })).toEqual([three, one]);
    expect(await listed({ delivery: { destinationId: ['dst_a', 'dst_b'] } })).toEqual([three, one]);
    expect(await listed({ delivery: { destinationId: ['dst_a', 'dst_c'] } })).toEqual([three, two, one]);
    expect(await listed({ delivery: { routeId: 'rte_a' } })).toEqual([three, two, one]);
    expect(await listed({ delivery: { routeId: ['rte_b', 'rte_c'] } })).toEqual([two, one]);
    expect(await listed({ delivery: { routeId: 'rte_a', destinationId: 'dst_c' } })).toEqual([three]);
    expect(await listed({ delivery: { routeId: 'rte_c', attemptsMax: 0 } })).toEqual([two]);
    expect(await listed({ statuses: ['pending'], sourceId: 'src_a', delivery: { destinationId: 'dst_b' } })).toEqual([one]);
    expect(await listed({ statuses: ['failed'], delivery: { destinationId: 'dst_b' } })).toEqual([]);
  });

  test('reads those deliveries alone, up to a time at the events', async () => {
    const id = await send([['rte_a', 'dst_a', 0]]);
    await fill();
    for (const delivery of [{ routeId: 'rte_a' }, { destinationId: 'dst_a' }]) {
      const { items, scanned, nextCursor } = await suite.reader.events('org_a', { delivery }, { limit: 50 });
      expect([items.map((event) => event.id), nextCursor]).toEqual([[id], null]);
      expect(scanned).toBeLessThan(10);
      const upTo = await suite.reader.events('org_a', { delivery, toMs: Date.now() }, { limit: 50 });
      expect([upTo.items.map((event) => event.id), upTo.scanned]).toEqual([[id], fillers + 1]);
    }
  });

  test('a list of events by their deliveries reads what has failed alone, where that is requested', async () => {
    const lost = await send([['rte_a', 'dst_a', 0]]);
    await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0), { type: 'retry', attempt: failure, delayMs: 3_600_000 });
    for (let i = 0; i < 20; i++) await send([['rte_a', 'dst_a', 0]]);
    const filter = { delivery: { errorTypes: ['http_error'] } };
    const { items, scanned } = await suite.reader.events('org_a', filter, { limit: 50 });
    expect(items.map(({ id }) => id)).toEqual([lost]);
    expect(scanned).toBeLessThan(5);
    expect(await listed({ delivery: { ...filter.delivery, routeId: 'rte_a' } })).toEqual([lost]);
  });

  test('a list of events by their deliveries reads what has failed alone, where events are requested of which deliveries have failed', async () => {
    const lost = await send([['rte_a', 'dst_a', 0]]);
    await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0), dead);
    const half = await send([
      ['rte_a', 'dst_a', 0],
      ['rte_a', 'dst_c', 1],
    ]);
    await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0), delivered);
    await settleAll(suite.queues.of(1), 'w1', await suite.queues.take(1), dead);
    await fill();
    for (const [statuses, ids] of [
      [['failed'], [lost]],
      [['partial'], [half]],
      [
        ['failed', 'partial'],
        [half, lost],
      ],
    ] as const) {
      const { items, scanned } = await suite.reader.events('org_a', { statuses, sourceId: 'src_a' }, { limit: 50 });
      expect(items.map(({ id }) => id)).toEqual(ids);
      expect(scanned).toBeLessThan(5);
      expect(await listed({ statuses })).toEqual(ids);
      expect(await listed({ statuses, toMs: Date.now() })).toEqual(ids);
    }
    expect(await listed({ statuses: ['failed', 'delivered'] })).toEqual([lost]);
  });

  test('a list of events by their deliveries keeps its order while its events are replayed', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) ids.push(await send([['rte_a', 'dst_a', 0]]));
    await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0), delivered);
    await fill();
    const replayer = new RedisMessageReplayer({ redis: suite.redis.client, prefix, clock: systemClock, shards: () => shards });
    const seen: string[] = [];
    const filter: EventFilter = { delivery: { destinationId: 'dst_a' } };
    const beganMs = Date.now();
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await suite.reader.events('org_a', filter, { limit: 1, cursor });
      seen.push(...page.items.map(({ id }) => id));
      cursor = page.nextCursor;
      const oldest = await suite.reader.deliveriesOfEvent('org_a', ids[0] ?? '');
      const latest = await suite.reader.deliveriesOfEvent('org_a', ids[3] ?? '');
      for (const [delivery] of [oldest, latest]) await replayer.replay('org_a', delivery?.id ?? '', {});
    }
    expect(seen).toEqual(ids.toReversed());
    expect(await listed(filter)).toEqual(ids.toReversed());
    expect(await listed({ ...filter, fromMs: beganMs })).toEqual([]);
    expect(await listed({ ...filter, toMs: beganMs })).toEqual(ids.toReversed());
  });

  test.each([0, 1])(
    'a list of events by their deliveries has an event that failed over under both destinations, in shard %i',
    async (shard) => {
      const id = await send([['rte_a', 'dst_a', 0]]);
      const failover = { destinations: [{ id: 'dst_b', shard }], afterAttempts: 1 };
      const jobs = await suite.queues.take(0, { failover });
      const later = await send([['rte_a', 'dst_a', 0]]);
      await settleAll(suite.queues.of(0), 'w1', jobs, { type: 'retry', attempt: failure, delayMs: 0 });
      await suite.queues.carry(0);
      await fill();
      expect(await suite.reader.deliveriesOfEvent('org_a', id)).toMatchObject([{ destinationId: 'dst_b', failedOverFrom: 'dst_a' }]);
      expect(await listed({ delivery: { destinationId: 'dst_a' } })).toEqual([later, id]);
      expect(await listed({ delivery: { destinationId: 'dst_b' } })).toEqual([id]);
      expect(await listed({ delivery: { destinationId: ['dst_b', 'dst_a'] } })).toEqual([later, id]);
      expect(await listed({ delivery: { destinationId: 'dst_b', attemptsMin: 1 } })).toEqual([id]);
    },
  );
});

test('one script reads events of 10,000 messages, whether these are requested or not', async () => {
  const targets = Array.from({ length: 900 }, (_, i) => ['rte_a', `dst_${i}`, 0] as const);
  for (let i = 0; i < 13; i++) await send(targets);
  const reader = new ShardReader(suite.redis.client, prefix, 0);
  const walk = { position: newest, fromMs: 0, count: 100, looks: 100 };
  const lengths = [walk, { ...walk, routeId: 'rte_a' }].map(async (query) => (await reader.scan('i:ev:org_a', 'e', query)).entries.length);
  expect(await Promise.all(lengths)).toEqual([12, 12]);
});
