import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { newTimedId } from '../../src/core/ids.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { resultId } from '../../src/data/shard/packed-results.ts';
import { sampleDetail, shownSampleDetail } from '../support/attempt-detail.ts';
import { eventually } from '../support/eventually.ts';
import { newEvent } from '../support/new-event.ts';
import { dead, delivered, failure, settleAll, takeFrom } from '../support/queue-worker.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let org: string;
let queue: RedisDeliveryQueue;
/** By the status that they have in the end. */
const events = new Map<string, ReturnType<typeof newEvent>>();
beforeAll(async () => {
  world = await startFacadeWorld();
  org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
  queue = new RedisDeliveryQueue({ redis: world.redis.client, prefix: 'test:' });
  await queue.refreshShard('w1', 1000);
  await accept('delivered', {});
  await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 64), delivered);
  await accept('failed', { sourceId: 'src_other' });
  await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 64), dead);
  await accept('partial', { destinations: ['dst_a', 'dst_b'] });
  await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 1), delivered);
  await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 1), {
    type: 'dead',
    attempt: { ...failure, detail: sampleDetail },
    reason: 'max_retries_exceeded',
  });
  await accept('filtered', { destinations: [], filteredRoutes: ['rte_f'] });
  await accept('no_routes', {
    destinations: [],
    headers: [
      ['x-gitlab-event', 'Push Hook'],
      ['x-gitlab-token', 'the secret'],
      ['x-api-key', 'the secret'],
    ],
  });
  await accept('pending', {
    destinations: ['dst_c'],
    filteredRoutes: ['rte_f'],
    payload: Buffer.from('<a/>'),
    contentType: 'text/xml',
    query: 'device=7&state=on',
  });
});
afterAll(() => world.stop());

async function accept(status: string, changes: Parameters<typeof newEvent>[0]): Promise<void> {
  const event = newEvent({ org, ...changes });
  await world.acceptor.accept(event);
  events.set(status, event);
}
const get = async (path: string) => world.request('GET', `/api/${path}`);
const idsOf = async (path: string): Promise<string[]> => (await get(path)).body.data.map(({ id }: { id: string }) => id);
const eventId = (status: string): string => events.get(status)?.id ?? '';
const messageIds = (status: string): string[] => {
  const { targets = [], filtered = [] } = events.get(status) ?? {};
  return [...targets.map(({ messageId }) => messageId), ...filtered.map((_, i) => resultId(eventId(status), i))];
};

test('an event has exactly its fields, the record with its deliveries', async () => {
  const expected = {
    id: eventId('pending'),
    organizationId: expect.stringMatching(/^org_/),
    sourceId: 'src_a',
    source: 'shop',
    sourceSlug: 'shop',
    sourceName: 'shop',
    receivedAt: new Date(events.get('pending')?.receivedAtMs ?? 0).toISOString(),
    method: 'POST',
    contentType: 'text/xml',
    size: 4,
    signatureValid: null,
    duplicateOf: null,
    deliverAt: null,
    status: 'pending',
    deliveryCount: 2,
  };
  const { body } = await get('events?limit=1');
  expect(body).toEqual({ data: [expected], pagination: { hasMore: true, nextCursor: expect.any(String), scanned: expect.any(Number) } });
  const record = (await get(`events/${eventId('pending')}`)).body;
  const deliveries = [expect.objectContaining({ status: 'pending' }), expect.objectContaining({ status: 'filtered' })];
  expect(record).toEqual({
    ...expected,
    query: 'device=7&state=on',
    headers: { 'content-type': 'application/json' },
    payload: '<a/>',
    payloadEncoding: 'text',
    deliveries: expect.arrayContaining(deliveries),
    unreached: {
      total: 1,
      byReason: { filtered: 1 },
      routes: [{ routeId: 'rte_f', deliveryId: expect.any(String), reason: 'filtered', conditions: [], error: null, changedSince: false }],
    },
  });
});

test('a secret that was stored with the headers of an event is not shown', async () => {
  expect((await get(`events/${eventId('no_routes')}`)).body.headers).toEqual({ 'x-gitlab-event': 'Push Hook' });
});

test('a delivery has exactly its fields, the record with its attempts', async () => {
  const [id = ''] = messageIds('failed');
  const expected = {
    id,
    organizationId: expect.stringMatching(/^org_/),
    eventId: eventId('failed'),
    routeId: 'rte_a',
    destinationId: 'dst_a',
    status: 'dlq',
    attempts: 1,
    maxAttempts: 3,
    nextAttemptAt: null,
    waitingFor: null,
    waitingUntil: null,
    lastResponseStatus: 500,
    lastErrorType: 'http_error',
    lastErrorMessage: 'status 500',
    deadLetterReason: 'max_retries_exceeded',
    failedOverFrom: null,
    replayedFrom: null,
    createdAt: expect.any(String),
    completedAt: expect.any(String),
    attemptCount: 1,
    nextRetryAt: null,
    responseStatus: 500,
    errorMessage: 'status 500',
    deliveredAt: null,
    expiresAt: null,
  };
  expect((await get('deliveries?status=dlq')).body.data).toContainEqual(expected);
  const { attemptDetails, ...record } = (await get(`deliveries/${id}`)).body;
  expect(record).toEqual(expected);
  expect(attemptDetails).toEqual([
    {
      attemptNumber: 1,
      startedAt: expect.any(String),
      durationMs: 5,
      responseStatus: 500,
      responseBody: 'ok',
      errorType: 'http_error',
      errorMessage: 'status 500',
      payloadForm: 'full',
      signatureScheme: null,
    },
  ]);
});

test('an attempt of a delivery shows what was sent and received, where that is kept', async () => {
  const details = await Promise.all(messageIds('partial').map(async (id) => (await get(`deliveries/${id}`)).body.attemptDetails));
  const seen = details.flat().map(({ errorType, detail }) => [errorType, detail]);
  expect(seen.sort()).toEqual(
    [
      [null, undefined],
      ['http_error', shownSampleDetail],
    ].sort(),
  );
});

test('an event without a query shows an empty one', async () => {
  expect((await get(`events/${eventId('no_routes')}`)).body.query).toBe('');
});

describe('lists', () => {
  test.each(['pending', 'delivered', 'partial', 'failed', 'filtered', 'no_routes'])('of events filter by the status %s', async (status) => {
    expect(await idsOf(`events?status=${status}`)).toEqual([eventId(status)]);
    expect((await get(`events/${eventId(status)}`)).body.status).toBe(status);
  });

  test('of events filter by source and time', async () => {
    expect(await idsOf('events?sourceId=src_other')).toEqual([eventId('failed')]);
    expect((await get('events?sourceId=nobody')).body).toMatchObject({
      code: 'RESOURCE_NOT_FOUND',
      message: 'There is no source "nobody".',
    });
    const before = new Date(Date.now() - 3_600_000).toISOString();
    expect(await idsOf(`events?from=${before}`)).toHaveLength(6);
    expect(await idsOf(`events?to=${before}`)).toEqual([]);
  });

  test('of deliveries filter by route, destination, status and time', async () => {
    expect((await idsOf('deliveries?destinationId=dst_c')).sort()).toEqual(messageIds('pending').slice(0, 1));
    expect((await idsOf('deliveries?routeId=rte_f')).sort()).toEqual([...messageIds('pending').slice(1), ...messageIds('filtered')].sort());
    expect(await idsOf('deliveries?routeId=rte_a&destinationId=dst_b')).toEqual(messageIds('partial').slice(1));
    expect(await idsOf('deliveries?status=delivered')).toHaveLength(2);
    expect((await idsOf('deliveries?status=filtered')).sort()).toEqual(
      [...messageIds('pending').slice(1), ...messageIds('filtered')].sort(),
    );
    const before = new Date(Date.now() - 3_600_000).toISOString();
    expect(await idsOf(`deliveries?status=dlq&from=${before}`)).toHaveLength(2);
    expect(await idsOf(`deliveries?status=dlq&to=${before}`)).toEqual([]);
  });

  test.each([
    'events?status=unknown',
    'events?from=yesterday',
    'events?limit=0',
    'events?limit=101',
    'deliveries?limit=0',
    'deliveries?limit=101',
    'events?cursor=forged',
    'deliveries?status=unknown',
    'deliveries?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z',
    'deliveries?cursor=forged',
  ])('refuse %s', async (path) => {
    expect(await get(path)).toMatchObject({ status: 400, body: { code: 'INVALID_QUERY' } });
  });

  test('are walked with cursors, which belong to their list', async () => {
    const seen: string[] = [];
    let cursor = '';
    do {
      const { body } = await get(`events?limit=2${cursor}`);
      seen.push(...body.data.map(({ id }: { id: string }) => id));
      cursor = body.pagination.hasMore ? `&cursor=${body.pagination.nextCursor}` : '';
      if (cursor !== '') expect(await get(`deliveries?limit=2${cursor}`)).toMatchObject({ status: 400 });
    } while (cursor !== '');
    expect(seen).toEqual([...events.values()].map(({ id }) => id).reverse());
  });
});

describe('a delivery', () => {
  const circuit = { failureThreshold: 2, cooldownSeconds: 3600, probeSuccessThreshold: 1 };
  /** The message, once it comes; what comes before it is delivered. */
  const take = (messageId = '') =>
    eventually(async () => {
      const jobs = await takeFrom(queue, 'w1', 64, { circuit });
      const wanted = jobs.filter((job) => job.messageId === messageId);
      await settleAll(
        queue,
        'w1',
        jobs.filter((job) => !wanted.includes(job)),
        delivered,
      );
      expect(wanted).toHaveLength(1);
      return wanted;
    });

  test('a delivery is pending, processing, retrying, waits for a circuit, and a dead letter is failed once archived', async () => {
    const event = newEvent({ org, destinations: ['dst_states'] });
    const [id = ''] = event.targets.map(({ messageId }) => messageId);
    const becomes = async (status: string, fields: object) => {
      expect((await get(`deliveries/${id}`)).body).toMatchObject({ status, ...fields });
      expect(await idsOf(`deliveries?destinationId=dst_states&status=${status}`)).toEqual([id]);
    };
    await world.acceptor.accept(event);
    await becomes('pending', { attempts: 0, nextAttemptAt: null, completedAt: null, lastResponseStatus: null });
    const first = await take(id);
    await becomes('processing', { attempts: 0, completedAt: null });
    const retried = {
      attempts: 1,
      nextAttemptAt: expect.any(String),
      completedAt: null,
      lastResponseStatus: 500,
      lastErrorType: 'http_error',
    };
    await settleAll(queue, 'w1', first, { type: 'retry', attempt: failure, delayMs: 3_600_000 });
    await becomes('retrying', retried);
    const another = newEvent({ org, destinations: ['dst_states'] });
    await world.acceptor.accept(another);
    const [lost] = another.targets;
    await settleAll(queue, 'w1', await take(lost?.messageId), dead);
    await becomes('circuit_open', { attempts: 1, completedAt: null, lastErrorType: 'http_error' });
    const late = newEvent({ org, destinations: ['dst_states'] });
    await world.acceptor.accept(late);
    const untried = { status: 'circuit_open', attempts: 0, lastErrorType: 'circuit_open', lastErrorMessage: null };
    expect((await get(`deliveries/${late.targets[0]?.messageId}`)).body).toMatchObject(untried);
    const archived = await world.request('POST', `/api/deliveries/${lost?.messageId}/archive`);
    expect([archived.status, await idsOf('deliveries?destinationId=dst_states&status=failed')]).toEqual([204, [lost?.messageId]]);
  });

  test('a delivery is schema_failed, transform_failed or filtered when nothing is sent, with the reason', async () => {
    for (const status of ['transform_failed', 'filtered'] as const) {
      const event = newEvent({ org, destinations: [`dst_${status}`] });
      await world.acceptor.accept(event);
      await settleAll(queue, 'w1', await take(event.targets[0]?.messageId), { type: 'unsent', status, reason: `by ${status}`, tookMs: 1 });
      const { body } = await get(`deliveries?destinationId=dst_${status}&status=${status}`);
      expect(body.data).toMatchObject([
        { id: event.targets[0]?.messageId, attempts: 0, completedAt: expect.any(String), lastErrorMessage: `by ${status}` },
      ]);
    }
    await world.acceptor.accept(newEvent({ org, destinations: [], invalidRoutes: { rte_schema: 'payload/id must be string' } }));
    const { body } = await get('deliveries?status=schema_failed');
    expect(body.data).toMatchObject([{ routeId: 'rte_schema', destinationId: null, lastErrorMessage: 'payload/id must be string' }]);
  });
});

test('the first thousand deliveries of an event with very many are shown, and how many there are', async () => {
  const { targets, ...event } = newEvent({ org, destinations: ['dst_many'] });
  const many = Array.from({ length: 1200 }, (_, i) => ({
    messageId: newTimedId('msg_', 0, event.receivedAtMs),
    routeId: `rte_many${i}`,
    destinationId: 'dst_many',
    shard: 0,
    maxAttempts: targets[0]?.maxAttempts ?? 1,
  }));
  await world.acceptor.accept({ ...event, targets: many });
  await eventually(async () => {
    const { body } = await get(`events/${event.id}`);
    expect(body.deliveryCount).toBe(1200);
    expect(body.deliveries).toHaveLength(1000);
  });
  expect(await idsOf('deliveries')).toHaveLength(50);
  expect(await idsOf('deliveries?limit=1')).toHaveLength(1);
  expect(await idsOf('deliveries?limit=100')).toHaveLength(100);
});

test('nothing of another organization is there', async () => {
  await world.addOrganization('other');
  const key = await world.addKey('other');
  for (const path of [`events/${eventId('failed')}`, `deliveries/${messageIds('failed')[0]}`]) {
    expect(await world.request('GET', `/api/${path}`, { key })).toMatchObject({ status: 404, body: { code: 'RESOURCE_NOT_FOUND' } });
  }
  expect((await world.request('GET', '/api/events', { key })).body.data).toEqual([]);
});

test('the payload of an event is the JSON that was received: its numbers, and keys that come twice', async () => {
  const text = '{ "id": 12345678901234567890, "price": 1.50, "tag": "a", "tag": "b" }\n';
  const event = newEvent({ org, destinations: [], payload: Buffer.from(text) });
  await world.acceptor.accept(event);
  const answer = await get(`events/${event.id}`);
  expect(answer.text).toContain(`"payload":${text},"payloadEncoding":"json"`);
  expect(answer.body).toMatchObject({ id: event.id, size: text.length, payload: { tag: 'b' } });
});

test('times before 1970 begin a list with its first entry, or end it before that, also when it is long', async () => {
  await world.addOrganization('long');
  const key = await world.addKey('long');
  const long = { org: await world.organizationId('long') };
  const accepted = Array.from({ length: 101 }, () => newEvent(long));
  for (const event of accepted) await world.acceptor.accept(event);
  const ask = (path: string) => world.request('GET', `/api/${path}`, { key });
  for (const list of ['events', 'deliveries']) {
    for (const from of ['0001-01-01T00:00:00Z', '1969-12-31']) {
      const { status, body } = await ask(`${list}?limit=100&from=${from}`);
      expect([status, body.data?.length, body.pagination?.hasMore]).toEqual([200, 100, true]);
      const rest = await ask(`${list}?limit=100&from=${from}&cursor=${body.pagination.nextCursor}`);
      expect(rest).toMatchObject({ status: 200, body: { data: [{}], pagination: { hasMore: false } } });
    }
    for (const range of ['to=1969-12-31', 'from=0001-01-01&to=1960-01-01'])
      expect(await ask(`${list}?${range}`)).toMatchObject({ status: 200, body: { data: [], pagination: { hasMore: false } } });
  }
});
