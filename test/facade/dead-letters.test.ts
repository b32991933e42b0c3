import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { Outcome } from '../../src/data/queue/delivery-queue.ts';
import type { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { resultId } from '../../src/data/shard/packed-results.ts';
import { emptiedQueue } from '../support/emptied-queue.ts';
import { eventually } from '../support/eventually.ts';
import { newEvent } from '../support/new-event.ts';
import { dead, delivered, failure, settleAll, takeFrom } from '../support/queue-worker.ts';
import { breakOff } from './broken-off.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let org: string;
let queue: RedisDeliveryQueue;
beforeAll(async () => {
  world = await startFacadeWorld();
  org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
});
afterAll(() => world.stop());
beforeEach(async () => {
  queue = await emptiedQueue(world);
});

const call = (method: string, path: string, body?: object) => world.request(method, `/api/deliveries${path}`, { body });

/** Takes what is queued and ends it so. */
async function end(outcome: Outcome): Promise<string[]> {
  const jobs = await takeFrom(queue, 'w1', 64);
  await settleAll(queue, 'w1', jobs, outcome);
  return jobs.map(({ messageId }) => messageId);
}

async function accept(destinations: string[] = ['dst_a']): Promise<string[]> {
  const event = newEvent({ org, destinations });
  await world.acceptor.accept(event);
  return event.targets.map(({ messageId }) => messageId);
}

test('a dead letter is replayed as a new delivery of the same event, which names the old one', async () => {
  const [id = ''] = await accept();
  await end(dead);
  const replay = await call('POST', `/${id}/replay`);
  expect(replay).toMatchObject({ status: 201, body: { originalDeliveryId: id, status: 'queued' } });
  const { newDeliveryId } = replay.body;
  const old = (await call('GET', `/${id}`)).body;
  expect(old).toMatchObject({ status: 'dlq', attempts: 1, replayedFrom: null });
  expect((await call('GET', `/${newDeliveryId}`)).body).toMatchObject({
    status: 'pending',
    attempts: 0,
    replayedFrom: id,
    eventId: old.eventId,
    destinationId: 'dst_a',
  });
  expect(await end(delivered)).toEqual([newDeliveryId]);
  const { body: event } = await world.request('GET', `/api/events/${old.eventId}`);
  expect(event).toMatchObject({ status: 'partial' });
  expect(event.deliveries).toHaveLength(2);
});

test.each<[string, (ids: string[]) => [string, object?]]>([
  ['of one', ([id]) => [`/${id}/replay`]],
  ['of many by id', (ids) => ['/bulk-replay', { ids }]],
])('a replay %s reaches an ordered target, behind what waits there', async (_, request) => {
  const next = () => takeFrom(queue, 'w1', 64, { inOrder: true });
  const old = [...(await accept()), ...(await accept())];
  for (const id of old) {
    const jobs = await next();
    expect(jobs.map(({ messageId }) => messageId)).toEqual([id]);
    await settleAll(queue, 'w1', jobs, dead);
  }
  const waiting = await accept();
  const [path, body] = request(old);
  const { newDeliveryId, deliveries = [{ newDeliveryId }] } = (await call('POST', path, body)).body;
  const replays = deliveries.map((each: { newDeliveryId: string }) => each.newDeliveryId);
  expect(replays).toHaveLength(body === undefined ? 1 : 2);
  for (const id of [...waiting, ...replays]) {
    const jobs = await next();
    expect(jobs.map(({ messageId }) => messageId)).toEqual([id]);
    await settleAll(queue, 'w1', jobs, delivered);
  }
});

test('what exceeds the queue limit of its destination is a dead letter that is listed, and replayed once there is room', async () => {
  const throttle = { mode: 'concurrency', rateLimit: null, rateUnit: null, maxConcurrency: 1, queueLimit: 3 } as const;
  const [first = ''] = await accept();
  const underWay = await takeFrom(queue, 'w1', 64, { throttle });
  const queued = [...(await accept()), ...(await accept())];
  const [excess = ''] = await accept();
  const listed = async () => (await call('GET', '?status=dlq')).body.data.map(({ id }: { id: string }) => id);
  expect(await listed()).toEqual([excess]);
  const untried = { status: 'dlq', attempts: 0, deadLetterReason: 'queue_limit_exceeded', lastErrorType: null, attemptDetails: [] };
  const { body: record } = await call('GET', `/${excess}`);
  expect(record).toMatchObject(untried);
  expect((await world.request('GET', `/api/events/${record.eventId}`)).body).toMatchObject({ status: 'failed' });
  expect((await call('GET', '/dead-letter-stats')).body).toMatchObject({ total: 1, byReason: { queue_limit_exceeded: 1 } });
  // The queue is as full as before.
  const { newDeliveryId: refused } = (await call('POST', `/${excess}/replay`)).body;
  expect(await listed()).toEqual([refused, excess]);
  await settleAll(queue, 'w1', underWay, delivered);
  const ended = [...(await end(delivered)), ...(await end(delivered))];
  expect([underWay.map(({ messageId }) => messageId), ended]).toEqual([[first], queued]);
  const { status, body } = await call('POST', `/${excess}/replay`);
  expect([status, body]).toEqual([
    201,
    expect.objectContaining({ originalDeliveryId: excess, newDeliveryId: body.deliveryId, status: 'queued' }),
  ]);
  expect(await end(delivered)).toEqual([body.newDeliveryId]);
  expect((await call('GET', `/${body.newDeliveryId}`)).body).toMatchObject({ status: 'delivered', replayedFrom: excess });
  expect((await call('GET', `/${excess}`)).body).toMatchObject(untried);
});

test('what is under way, unknown, of another organization, or without payload is not replayed', async () => {
  const [id = ''] = await accept();
  expect(await call('POST', `/${id}/replay`)).toMatchObject({ status: 409, body: { code: 'CONFLICT' } });
  await end(delivered);
  await world.addOrganization('other');
  const key = await world.addKey('other');
  expect(await world.request('POST', `/api/deliveries/${id}/replay`, { key })).toMatchObject({ status: 404 });
  const viewer = await world.addKey('acme', { role: 'viewer' });
  expect(await world.request('POST', `/api/deliveries/${id}/replay`, { key: viewer })).toMatchObject({ status: 403 });
  expect(await call('POST', `/msg_00${'a'.repeat(25)}/replay`)).toMatchObject({ status: 404 });
  expect(await call('POST', '/nonsense/replay')).toMatchObject({ status: 404 });
  await world.redis.client.del(await world.redis.client.keys('test:{s0}:e:*'));
  expect(await call('POST', `/${id}/replay`)).toMatchObject({ status: 409, body: { code: 'PAYLOAD_NOT_FOUND' } });
});

test('what a filter has held back has ended, but had no destination to be sent to again', async () => {
  const event = newEvent({ org, destinations: [], filteredRoutes: ['rte_a'] });
  await world.acceptor.accept(event);
  const { status, body } = await call('POST', `/${resultId(event.id, 0)}/replay`);
  expect([status, body.message]).toEqual([409, 'The delivery is filtered: it never had a destination to be sent to again.']);
});

test('deliveries are replayed and archived in bulk, and what cannot be is skipped', async () => {
  const ids = await accept(['dst_a', 'dst_b']);
  await end(dead);
  const body = { ids: [...ids, ids[0], 'unknown'] };
  const replayed = await call('POST', '/bulk-replay', body);
  expect(replayed).toMatchObject({ status: 200, body: { queued: 2, skipped: 1 } });
  expect(replayed.body.deliveries.map(({ originalDeliveryId }: { originalDeliveryId: string }) => originalDeliveryId)).toEqual(ids);
  expect(await call('POST', '/bulk-archive', body)).toMatchObject({ status: 200, body: { archived: 2, skipped: 1 } });
  expect(await call('POST', '/bulk-replay', { ids: Array.from({ length: 101 }, () => 'x') })).toMatchObject({ status: 400 });
  expect(await call('POST', '/bulk-archive', { ids: [] })).toMatchObject({ status: 400 });
});

test('dead letters are counted by reason and destination until they are archived', async () => {
  const stats = async () => (await call('GET', '/dead-letter-stats')).body;
  expect(await stats()).toEqual({ total: 0, byReason: {}, topFailingDestinations: [] });
  const [id = ''] = await accept(['dst_a', 'dst_b']);
  await end(dead);
  await accept(['dst_b']);
  await end({ type: 'dead', attempt: failure, reason: 'payload_not_found' });
  expect(await stats()).toEqual({
    total: 3,
    byReason: { max_retries_exceeded: 2, payload_not_found: 1 },
    topFailingDestinations: [
      { destinationId: 'dst_b', count: 2 },
      { destinationId: 'dst_a', count: 1 },
    ],
  });
  expect(await call('POST', `/${id}/archive`)).toMatchObject({ status: 204 });
  expect(await call('POST', `/${id}/archive`)).toMatchObject({ status: 204 });
  const [open = ''] = await accept(['dst_c']);
  expect(await call('POST', `/${open}/archive`)).toMatchObject({ status: 409, body: { code: 'CONFLICT' } });
  await end(delivered);
  expect((await call('GET', `/${id}`)).body).toMatchObject({ status: 'failed', deadLetterReason: 'max_retries_exceeded' });
  expect(await stats()).toMatchObject({ total: 2, topFailingDestinations: [{ destinationId: 'dst_b', count: 2 }] });
  expect((await call('GET', '?status=dlq')).body.data).toHaveLength(2);
  while ((await queue.prune({ finishedMs: -1, deadLettersMs: -1 })).hasMore);
  expect(await stats()).toEqual({ total: 0, byReason: {}, topFailingDestinations: [] });
});

test('replays count as messages of the month: beyond it none of them is queued, and what is skipped is not counted', async () => {
  const spec = { namespace: 'metered', plan: 'free' as const, limits: { monthlyMessages: 3 } };
  await world.store.apply({ kind: 'Organization', metadata: { name: 'metered' }, spec }, { manager: 'kubectl' });
  const organization = await eventually(async () => {
    const { status } = await world.store.get('Organization', { name: 'metered' });
    expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }));
    return status?.id ?? '';
  });
  const key = await world.addKey('metered');
  const ids: string[] = [];
  for (let i = 0; i < 4; i++) {
    const event = newEvent({ org: organization });
    await world.acceptor.accept(event);
    ids.push(...event.targets.map(({ messageId }) => messageId));
  }
  await end(dead);
  const replay = (...wanted: string[]) => world.request('POST', '/api/deliveries/bulk-replay', { key, body: { ids: wanted } });
  expect(await replay(...ids, 'msg_unknown')).toMatchObject({ status: 429, body: { code: 'QUOTA_EXCEEDED' } });
  expect(await end(dead)).toEqual([]);
  expect((await replay(ids[0] ?? '', 'msg_unknown')).body).toMatchObject({ queued: 1, skipped: 1 });
  expect((await replay(ids[0] ?? '', ids[1] ?? '', ids[2] ?? '')).body.code).toBe('QUOTA_EXCEEDED');
  expect((await replay(ids[0] ?? '', ids[1] ?? '')).body).toMatchObject({ queued: 2, skipped: 0 });
  const refused = await world.request('POST', `/api/deliveries/${ids[2]}/replay`, { key });
  expect([refused.status, refused.body.code]).toEqual([429, 'QUOTA_EXCEEDED']);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
});

test.each<[string, (ids: string[]) => [string, object?]]>([
  ['a replay', ([id]) => [`/${id}/replay`]],
  ['a replay of many', (ids) => ['/bulk-replay', { ids }]],
])('%s that was broken off is not done again by the next request with its Idempotency-Key, which has its answer', async (name, request) => {
  const ids = await accept(['dst_a', 'dst_b']);
  await end(dead);
  const key = name.replaceAll(' ', '-');
  const [path, body] = request(ids);
  const post = () => world.request('POST', `/api/deliveries${path}`, { body, headers: { 'idempotency-key': key } });
  const first = await post();
  expect((await end(delivered)).length).toBeGreaterThan(0);
  await call('POST', '/bulk-archive', { ids });
  await breakOff(world, key);
  const second = await post();
  expect([second.status, second.body]).toEqual([first.status, first.body]);
  expect(second.headers.get('idempotent-replayed')).toBeNull();
  expect(await end(delivered)).toEqual([]);
});
