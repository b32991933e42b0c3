import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { newEvent } from '../support/new-event.ts';
import { delivered, settleAll, takeFrom } from '../support/queue-worker.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
/** Each with deliveries to two destinations, the oldest first. */
const events: ReturnType<typeof newEvent>[] = [];
beforeAll(async () => {
  world = await startFacadeWorld();
  const org = await world.organizationId('acme');
  const queue = new RedisDeliveryQueue({ redis: world.redis.client, prefix: 'test:' });
  await queue.refreshShard('w1', 1000);
  for (let i = 0; i < 60; i++) {
    const event = newEvent({ org, destinations: ['dst_a', 'dst_b'] });
    await world.acceptor.accept(event);
    events.push(event);
  }
  await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 120), delivered);
});
afterAll(() => world?.stop());

const get = (path: string) => world.request('GET', `/api/${path}`);
const idsOf = async (path: string): Promise<string[]> => (await get(path)).body.data.map(({ id }: { id: string }) => id);
const events60 = () => events.map(({ id }) => id);

test('pages of deliveries by offset are those by cursor, and those of an event are its own', async () => {
  const first = (await get('deliveries?limit=100')).body;
  const all = [...first.data, ...(await get(`deliveries?limit=100&cursor=${first.pagination.nextCursor}`)).body.data].map(({ id }) => id);
  expect(new Set(all).size).toBe(120);
  for (const [offset, limit] of [
    [0, 3],
    [1, 3],
    [99, 5],
    [100, 20],
    [118, 5],
    [120, 5],
    [10_000, 1],
  ] as const)
    expect(await idsOf(`deliveries?offset=${offset}&limit=${limit}`)).toEqual(all.slice(offset, offset + limit));
  const toOne = (await get('deliveries?destinationId=dst_a&offset=58')).body;
  expect([toOne.data.length, toOne.pagination]).toMatchObject([2, { hasMore: false, nextCursor: null }]);

  const [event] = events;
  const own = event?.targets.map(({ messageId }) => messageId) ?? [];
  expect((await idsOf(`deliveries?eventId=${event?.id}`)).sort()).toEqual([...own].sort());
  expect(await idsOf(`deliveries?eventId=${event?.id}&destinationId=dst_b&status=delivered`)).toEqual([
    event?.targets.find(({ destinationId }) => destinationId === 'dst_b')?.messageId,
  ]);
  expect(await idsOf(`deliveries?eventId=${event?.id}&status=failed`)).toEqual([]);
  expect((await get(`deliveries?eventId=${event?.id}&limit=1`)).body.pagination).toEqual({ hasMore: true, nextCursor: null });
  expect(await idsOf(`deliveries?eventId=${event?.id}&limit=1&offset=1`)).toHaveLength(1);
  for (const unknown of ['evt_unknown', newEvent().id, event?.targets[0]?.messageId ?? '']) {
    const { status, body } = await get(`deliveries?eventId=${unknown}`);
    expect([status, body.code, body.message]).toEqual([404, 'RESOURCE_NOT_FOUND', `There is no event "${unknown}".`]);
  }
});

test.each(['offset=10001', 'offset=-1', 'offset=x', 'cursor=c&offset=1', 'cursor=c&eventId=evt_a'])(
  'deliveries with %s are 400',
  async (query) => {
    const answer = await get(`deliveries?${query}`);
    expect([answer.status, answer.body.code]).toEqual([400, 'INVALID_QUERY']);
  },
);

test('all deliveries of events are replayed at once, at most 100, and no replays', async () => {
  const post = (eventIds: string[]) => world.request('POST', '/api/deliveries/bulk-replay-events', { body: { eventIds } });
  const [one = '', two = ''] = events60();
  for (let again = 0; again < 2; again++) {
    const { status, body } = await post([one, two, one, 'evt_unknown']);
    expect([status, body]).toEqual([200, expect.objectContaining({ queued: 4, skipped: 0, eventsProcessed: 2 })]);
    expect(body.deliveries).toHaveLength(4);
  }
  const many = await post(events60().slice(0, 51));
  expect([many.status, many.body.code]).toEqual([400, 'VALIDATION_FAILED']);
  expect((await post(events60().slice(2, 52))).body).toMatchObject({ queued: 100, skipped: 0 });
});

test('deliveries are named by ids or deliveryIds', async () => {
  const post = (body: object) => world.request('POST', '/api/deliveries/bulk-replay', { body });
  const id = events[59]?.targets[0]?.messageId ?? '';
  for (const body of [{ ids: [id] }, { deliveryIds: [id] }]) expect((await post(body)).body).toMatchObject({ queued: 1, skipped: 0 });
  for (const body of [{}, { ids: [id], deliveryIds: ['msg_other'] }]) expect((await post(body)).status).toBe(400);
});

test('a time of a list may be sent under either name', async () => {
  const before = new Date(Date.now() - 3_600_000).toISOString();
  for (const [query, count] of [
    [`fromDate=${before}`, 60],
    [`toDate=${before}`, 0],
    [`from=${before}&fromDate=${before}`, 60],
  ] as const)
    expect(await idsOf(`events?limit=100&${query}`)).toHaveLength(count);
  const answer = await get(`events?from=${before}&fromDate=2026-01-01`);
  expect([answer.status, answer.body.code]).toEqual([400, 'INVALID_QUERY']);
});
