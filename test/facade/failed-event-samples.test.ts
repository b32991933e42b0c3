import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { Outcome } from '../../src/data/queue/delivery-queue.ts';
import type { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { emptiedQueue } from '../support/emptied-queue.ts';
import { newEvent } from '../support/new-event.ts';
import { dead, delivered, failure, settleAll, takeFrom } from '../support/queue-worker.ts';
import { expectShortTurns } from '../support/short-work.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let org: string;
let route: string;
let queue: RedisDeliveryQueue;
beforeAll(async () => {
  world = await startFacadeWorld();
  org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
  const post = async (path: string, body: object) => (await world.request('POST', `/api/${path}`, { body })).body.id;
  const sourceId = await post('sources', { name: 'Orders' });
  const destinationIds = [await post('destinations', { name: 'First', url: 'https://first.example/' })];
  route = await post('routes', { name: 'All', sourceId, destinationIds });
});
afterAll(() => world.stop());
beforeEach(async () => {
  queue = await emptiedQueue(world);
});

const samples = async (query = '') => world.request('GET', `/api/routes/${route}/failed-event-samples${query}`);

async function fail(changes: Parameters<typeof newEvent>[0] = {}, outcome: Outcome = dead): Promise<ReturnType<typeof newEvent>> {
  const { targets, ...event } = newEvent({ org, ...changes });
  const made = { ...event, targets: targets.map((target) => ({ ...target, routeId: route })) };
  await world.acceptor.accept(made);
  await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 64), outcome);
  return made;
}

test('samples show what was received, where it failed and what the receiver said, the newest first', async () => {
  const first = await fail();
  const attempt = { ...failure, responseStatus: 422, responseBody: 'no such order', errorMessage: 'the receiver answered 422' };
  const second = await fail(
    { destinations: ['dst_b'], payload: Buffer.from('order=7') },
    { type: 'dead', attempt, reason: 'max_retries_exceeded' },
  );
  await fail({}, delivered);
  const { status, body } = await samples();
  expect(status).toBe(200);
  expect(body).toEqual({
    data: [
      {
        eventId: second.id,
        messageId: second.targets[0]?.messageId,
        destinationId: 'dst_b',
        attempts: 1,
        responseStatus: 422,
        errorType: 'http_error',
        errorMessage: 'the receiver answered 422',
        responseBody: 'no such order',
        payload: 'order=7',
        receivedAt: new Date(second.receivedAtMs).toISOString(),
        failedAt: expect.any(String),
      },
      expect.objectContaining({ eventId: first.id, destinationId: 'dst_a', payload: { a: 1 }, responseStatus: 500 }),
    ],
  });
});

test('an event that fails at two destinations gives two samples', async () => {
  const event = await fail({ destinations: ['dst_a', 'dst_b'] });
  const { data } = (await samples()).body;
  expect(data.map(({ eventId, destinationId }: Record<string, string>) => [eventId, destinationId]).sort()).toEqual([
    [event.id, 'dst_a'],
    [event.id, 'dst_b'],
  ]);
});

test('ten are shown by default, as many as requested up to a hundred', async () => {
  for (let i = 0; i < 12; i++) await fail();
  expect((await samples()).body.data).toHaveLength(10);
  expect((await samples('?limit=3')).body.data).toHaveLength(3);
  expect((await samples('?limit=100')).body.data).toHaveLength(12);
  for (const limit of ['0', '101', 'x'])
    expect(await samples(`?limit=${limit}`)).toMatchObject({ status: 400, body: { code: 'INVALID_QUERY' } });
});

test('JSON is shown as it was received: its numbers, and keys that come twice', async () => {
  const texts = ['{"id":12345678901234567890,"price":1.50}', '[{"tag":"a","tag":"b"}, 1e400]'];
  for (const text of texts) await fail({ payload: Buffer.from(text) });
  const shown = [...(await samples()).text.matchAll(/"payload":(.*?),"receivedAt"/g)].map(([, payload]) => payload);
  expect(shown).toEqual(texts.reverse());
});

test('the beginning of a large payload is shown, without a broken character', async () => {
  const text = `{"text":"${'ü'.repeat(40_000)}"}`;
  await fail({ payload: Buffer.from(text) });
  await fail({ payload: Buffer.alloc(70_000, 0xff) });
  const [binary, letters] = (await samples()).body.data;
  expect(letters.payload).toHaveLength(32_772);
  expect(text.startsWith(letters.payload)).toBe(true);
  expect(Buffer.from(binary.payload, 'base64').equals(Buffer.alloc(65_536, 0xff))).toBe(true);
});

test('No turn of the event loop is long for a hundred samples of payloads that are dear to read', async () => {
  const payload = Buffer.from(`[${'[],'.repeat(21_000)}[]]`);
  for (let i = 0; i < 100; i++) await fail({ payload });
  let bytes = 0;
  await expectShortTurns(100, async () => {
    const answer = await fetch(`${world.baseUrl}/api/routes/${route}/failed-event-samples?limit=100`, {
      headers: { authorization: `Bearer ${world.admin}` },
    });
    bytes = (await answer.arrayBuffer()).byteLength;
  });
  expect(bytes).toBeGreaterThan(100 * payload.length);
});

test('the reason is shown where there was no attempt', async () => {
  await fail({}, { type: 'dead', attempt: null, reason: 'secret_decryption_failed' });
  await fail({}, { type: 'dead', attempt: null, reason: 'circuit_breaker_exhausted' });
  const nothingSent = { attempts: 0, responseStatus: null, responseBody: null };
  expect((await samples()).body.data).toMatchObject([
    { ...nothingSent, errorType: 'circuit_open', errorMessage: 'the circuit was open for too long' },
    { ...nothingSent, errorType: 'secret_decryption_failed', errorMessage: expect.stringContaining('does not open') },
  ]);
});

test('what a schema or a transform refuses is a sample, too', async () => {
  await fail({}, { type: 'unsent', status: 'transform_failed', reason: 'the code threw', tookMs: 3 });
  await world.acceptor.accept(newEvent({ org, destinations: [], invalidRoutes: { [route]: 'payload/id must be string' } }));
  const nothingSent = { attempts: 0, responseStatus: null, responseBody: null };
  expect((await samples()).body.data).toMatchObject([
    { ...nothingSent, destinationId: null, errorType: 'schema_failed', errorMessage: 'payload/id must be string', payload: { a: 1 } },
    { ...nothingSent, destinationId: 'dst_a', errorType: 'transform_failed', errorMessage: 'the code threw' },
  ]);
  const { body } = await world.request('GET', '/api/analytics/routes');
  expect(body.routes).toMatchObject([{ failed: 2, delivered: 0, successRate: 0 }]);
  expect((await world.request('GET', '/api/analytics')).body).toMatchObject({
    statusBreakdown: { failed: 2 },
    destinations: [{ deliveryCount: 0, successRate: null }],
  });
  while ((await queue.prune({ finishedMs: -1000, deadLettersMs: -1000 })).hasMore);
  expect(await world.redis.client.keys('test:*:i:fail:*')).toEqual([]);
});

test('what was archived or removed is no sample any more', async () => {
  const { targets } = await fail();
  await fail();
  await world.request('POST', `/api/deliveries/${targets[0]?.messageId}/archive`);
  expect((await samples()).body.data).toHaveLength(1);
  while ((await queue.prune({ finishedMs: -1000, deadLettersMs: -1000 })).hasMore);
  expect((await samples()).body.data).toEqual([]);
  expect(await world.redis.client.keys('test:*:i:fail:*')).toEqual([]);
});

test('a route that is not there has no samples', async () => {
  expect(await world.request('GET', '/api/routes/nowhere/failed-event-samples')).toMatchObject({
    status: 404,
    body: { code: 'RESOURCE_NOT_FOUND' },
  });
});
