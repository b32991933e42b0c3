import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { allPages as everyPage } from '../../../test/support/all-pages.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import type { NewEvent, PageQuery, ViewPage } from '../shard/messages.ts';
import { RedisMessageReader } from './message-reader.ts';

let redis: RedisServer;
let acceptor: RedisMessageAcceptor;
let reader: RedisMessageReader;
beforeAll(async () => {
  redis = await startRedis();
  acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix: 'test:', clock: lenientClock });
  reader = new RedisMessageReader({ redis: redis.client, prefix: 'test:' });
});
afterAll(() => redis.stop());
beforeEach(() => redis.client.flushall());

async function accept(count: number, changes: Parameters<typeof newEvent>[0] = {}): Promise<NewEvent[]> {
  const events = Array.from({ length: count }, () => newEvent(changes));
  for (const event of events) await acceptor.accept(event);
  return events;
}

function allPages<T>(list: (page: PageQuery) => Promise<ViewPage<T>>, limit: number): Promise<T[]> {
  return everyPage(async (query) => {
    const page = await list(query);
    expect(page.items.length).toBeLessThanOrEqual(limit);
    return page;
  }, limit);
}

describe('a list', () => {
  // Below 100 entries an index is a sorted set, above it is a stream.
  test.each([7, 99, 100, 101, 250])('a list of %i is complete, newest first, without repeats', async (count) => {
    const events = await accept(count);
    const expected = events.map(({ id }) => id).reverse();
    expect((await allPages((page) => reader.events('org_a', {}, page), 33)).map(({ id }) => id)).toEqual(expected);
    const deliveries = await allPages((page) => reader.deliveries('org_a', { routeId: 'rte_a' }, page), 50);
    expect(deliveries.map(({ eventId }) => eventId)).toEqual(expected);
  });

  test('a list is complete while lists that grow together turn into streams, one with each event', async () => {
    const destinations = Array.from({ length: 12 }, (_, k) => `dst_${k}`);
    const events = await accept(100, { destinations });
    const types = async (): Promise<string[]> =>
      await Promise.all(destinations.map((destination) => redis.client.type(`test:{s0}:i:${destination}`)));
    expect(await types()).toEqual(destinations.map(() => 'zset'));
    const streams: number[] = [];
    for (let k = 0; k < 20; k += 1) {
      events.push(...(await accept(1, { destinations })));
      streams.push((await types()).filter((type) => type === 'stream').length);
    }
    expect(streams.every((count, k) => count - (streams[k - 1] ?? 0) <= 1)).toBe(true);
    expect(streams.at(-1)).toBe(12);
    const expected = events.map(({ id }) => id).reverse();
    for (const destinationId of destinations) {
      const items = await allPages((page) => reader.deliveries('org_a', { destinationId }, page), 50);
      expect(items.map(({ eventId }) => eventId)).toEqual(expected);
    }
  });

  test('a page that looks for nothing beyond has a cursor when it is full, and costs one read fewer', async () => {
    const events = await accept(200);
    const calls = async (page: PageQuery): Promise<[number, ViewPage<unknown>]> => {
      await redis.client.config('RESETSTAT');
      const found = await reader.deliveries('org_a', { routeId: 'rte_a' }, page);
      const [, count = '0'] = /cmdstat_evalsha:calls=(\d+)/.exec(await redis.client.info('commandstats')) ?? [];
      return [Number(count), found];
    };
    await calls({ limit: 1 });
    const [readsAhead] = await calls({ limit: 100 });
    const [reads, { items, nextCursor }] = await calls({ limit: 100, looksAhead: false });
    expect([readsAhead - reads, items.length]).toEqual([1, 100]);
    const rest = await reader.deliveries('org_a', { routeId: 'rte_a' }, { limit: 100, looksAhead: false, cursor: String(nextCursor) });
    expect(rest.items.at(-1)?.eventId).toBe(events[0]?.id);
    const end = { limit: 100, looksAhead: false as const, cursor: String(rest.nextCursor) };
    expect(await reader.deliveries('org_a', { routeId: 'rte_a' }, end)).toMatchObject({ items: [], nextCursor: null });
  });

  test('a list stays where it was while new entries come', async () => {
    const [oldest] = await accept(1);
    await accept(1);
    const first = await reader.events('org_a', {}, { limit: 1 });
    await accept(3);
    const second = await reader.events('org_a', {}, { limit: 1, cursor: first.nextCursor ?? '' });
    expect(second.items.map(({ id }) => id)).toEqual([oldest?.id]);
    expect(second.nextCursor).toBeNull();
  });

  test('a list of a destination holds its deliveries only', async () => {
    await accept(3, { destinations: ['dst_b'] });
    const [event] = await accept(1, { destinations: ['dst_a', 'dst_b'] });
    const { items } = await reader.deliveries('org_a', { destinationId: 'dst_a' }, { limit: 10 });
    expect(items.map(({ id }) => id)).toEqual([event?.targets[0]?.messageId]);
  });

  test('a list takes a status and a time range', async () => {
    await accept(2, { filteredRoutes: ['rte_f'] });
    expect((await reader.deliveries('org_a', { statuses: ['filtered'] }, { limit: 10 })).items).toHaveLength(2);
    const { items } = await reader.events('org_a', {}, { limit: 10 });
    expect((await reader.events('org_a', { toMs: (items[1]?.receivedAtMs ?? 0) - 1000 }, { limit: 10 })).items).toEqual([]);
    expect((await reader.events('org_a', { fromMs: (items[1]?.receivedAtMs ?? 0) - 1000 }, { limit: 10 })).items).toHaveLength(2);
  });

  test('a list ends a page early when its time is over, and leads on', async () => {
    await accept(1, { filteredRoutes: ['rte_f'], destinations: [] });
    await accept(1100);
    const hasty = new RedisMessageReader({ redis: redis.client, prefix: 'test:', fillMs: 0 });
    const first = await hasty.events('org_a', { statuses: ['filtered'] }, { limit: 10 });
    expect(first.items).toEqual([]);
    expect(first.nextCursor).not.toBeNull();
    expect(await allPages((page) => hasty.events('org_a', { statuses: ['filtered'] }, page), 10)).toHaveLength(1);
  });
});

describe('a cursor', () => {
  test.each(['', 'x', 'AAAAAAAAAAAAMTc5NTIyNTAzNzg5MC01'])('%j is refused when it was not made here', async (cursor) => {
    await expect(reader.events('org_a', {}, { limit: 1, cursor })).rejects.toMatchObject({ code: 'INVALID_QUERY' });
  });

  test('a cursor of another organization or filter is refused', async () => {
    await accept(2);
    const cursor = (await reader.events('org_a', {}, { limit: 1 })).nextCursor ?? '';
    await expect(reader.events('org_b', {}, { limit: 1, cursor })).rejects.toMatchObject({ code: 'INVALID_QUERY' });
    await expect(reader.events('org_a', { statuses: ['failed'] }, { limit: 1, cursor })).rejects.toMatchObject({ code: 'INVALID_QUERY' });
  });
});

describe('another organization', () => {
  test('another organization sees neither event nor delivery nor attempts', async () => {
    const [event] = await accept(1);
    const messageId = event?.targets[0]?.messageId ?? '';
    expect(await reader.event('org_b', event?.id ?? '')).toBeNull();
    expect(await reader.delivery('org_b', messageId)).toBeNull();
    expect(await reader.deliveriesOfEvent('org_b', event?.id ?? '')).toEqual([]);
    expect(await reader.attempts('org_b', messageId)).toEqual([]);
    expect((await reader.deliveries('org_b', { destinationId: 'dst_a' }, { limit: 10 })).items).toEqual([]);
  });
});

test('counters that are requested together are read with one command', async () => {
  await accept(1);
  const reads = async (): Promise<number> => Number(/cmdstat_hmget:calls=(\d+)/.exec(await redis.client.info('commandstats'))?.[1] ?? '0');
  const before = await reads();
  const ids = ['rte_a', 'src_a', 'rte_b', 'src_b'];
  const counted = await Promise.all(ids.map((id) => reader.eventCounters('org_a', id)));
  expect(counted.map(({ events }) => events)).toEqual([1, 1, 0, 0]);
  expect((await reads()) - before).toBe(1);
});

test('counters count events of sources and routes', async () => {
  await accept(3, { destinations: ['dst_a', 'dst_b'] });
  expect(await reader.eventCounters('org_a', 'src_a')).toMatchObject({ events: 3 });
  expect(await reader.eventCounters('org_a', 'rte_a')).toMatchObject({ events: 3 });
});

test.each(['', 'evt_', '../../x', 'evt_zz0mwpqmwjmuni5j4rmbymczq52'])('the id %j is nobody’s', async (id) => {
  expect(await reader.event('org_a', id)).toBeNull();
  expect(await reader.delivery('org_a', id)).toBeNull();
});
