import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { hashFields } from '../../../src/data/shard/hash-fields.ts';
import type { DeadLetterReason } from '../../../src/data/shard/messages.ts';
import { eventually } from '../../support/eventually.ts';
import { dead, delivered, failure } from '../../support/queue-worker.ts';
import { newWebhookEvent } from '../../support/webhook-messages.ts';
import { newWebhookEndpoint } from '../../support/webhooks.ts';
import { breakOff } from '../broken-off.ts';
import { idsOf, type MessagesWorld, startMessagesWorld } from './messages-world.ts';

let world: MessagesWorld;
beforeAll(async () => {
  world = await startMessagesWorld();
});
afterAll(() => world.stop());
beforeEach(() => world.clear());

const call = (method: string, path: string, body?: object) => world.facade.request(method, `/api/outbound-messages/dlq${path}`, { body });
const listed = async (query = '') => idsOf((await call('GET', `/messages${query}`)).body.data);
const stats = async () => (await call('GET', '/stats')).body.data;
const message = async (id: string) => (await world.facade.request('GET', `/api/outbound-messages/${id}`)).body.data;

/** Sends to the endpoints, and all of it ends as dead letters for the reason. */
async function bury(
  endpoints: Parameters<MessagesWorld['send']>[0],
  reason: DeadLetterReason = 'max_retries_exceeded',
  eventType?: string,
) {
  const ids = await world.send(endpoints, { eventType });
  await world.end({ type: 'dead', attempt: failure, reason });
  return ids;
}

describe('a dead letter', () => {
  test('a dead letter says why, since when, and how often it was sent again', async () => {
    const [id = ''] = await bury([await world.endpoint()]);
    const [record] = (await call('GET', '/messages')).body.data;
    expect(record).toMatchObject({
      id,
      status: 'dlq',
      lastErrorType: 'http_error',
      dlqReason: 'max_retries_exceeded',
      dlqMovedAt: record.completedAt,
      dlqRetryCount: 0,
      dlqLastRetryAt: null,
    });
    expect(Math.abs(Date.parse(record.dlqMovedAt) - Date.now())).toBeLessThan(60_000);
    for (const count of [1, 2]) {
      const { status, body } = await call('POST', `/${id}/retry`);
      expect([status, body]).toEqual([201, { data: { originalMessageId: id, newMessageId: expect.any(String), status: 'queued' } }]);
      expect(await message(body.data.newMessageId)).toMatchObject({ status: 'pending', replayedFrom: id });
      const { status: unchanged, dlqRetryCount, dlqLastRetryAt } = await message(id);
      expect([unchanged, dlqRetryCount]).toEqual(['dlq', count]);
      expect(Math.abs(Date.parse(dlqLastRetryAt) - Date.now())).toBeLessThan(60_000);
    }
  });

  test('a dead letter of a circuit names it as the error, also once it is archived, unless an attempt has failed before', async () => {
    const [id = ''] = await world.send([await world.endpoint()]);
    await world.end({ type: 'dead', attempt: null, reason: 'circuit_breaker_exhausted' });
    const [tried = ''] = await bury([await world.endpoint()], 'circuit_breaker_exhausted');
    const errors = async () =>
      (await call('GET', '/messages')).body.data.map((each: Record<string, unknown>) => [each['id'], each['lastErrorType']]);
    expect(await errors()).toEqual([
      [tried, 'http_error'],
      [id, 'circuit_open'],
    ]);
    await call('DELETE', `/${id}`);
    expect(await message(id)).toMatchObject({ status: 'exhausted', dlqReason: 'circuit_breaker_exhausted', lastErrorType: 'circuit_open' });
  });

  test('a dead letter is archived: it is exhausted, keeps why and since when it was one, and is in no list of dead letters', async () => {
    const [id = ''] = await bury([await world.endpoint()]);
    const { dlqMovedAt } = await message(id);
    expect(await call('DELETE', `/${id}`)).toMatchObject({ status: 200, body: { success: true } });
    expect(await message(id)).toMatchObject({ status: 'exhausted', dlqReason: 'max_retries_exceeded', dlqMovedAt });
    expect(await listed()).toEqual([]);
    expect(await stats()).toEqual({ total: 0, byReason: {}, topFailingEndpoints: [], byEndpoint: [] });
    const again = await call('DELETE', `/${id}`);
    expect([again.status, again.body]).toEqual([409, { error: 'Conflict', message: expect.stringContaining('exhausted'), details: {} }]);
  });

  test('alone can be retried and archived here: 409 for another message, 404 for none', async () => {
    const [id = ''] = await world.send([await world.endpoint()]);
    for (const [method, path] of [
      ['POST', '/retry'],
      ['DELETE', ''],
    ] as const) {
      expect((await call(method, `/${id}${path}`)).status).toBe(409);
      const unknown = await call(method, `/msg_00${'a'.repeat(25)}${path}`);
      expect([unknown.status, unknown.body.error]).toEqual([404, 'Not found']);
    }
    expect(await message(id)).toMatchObject({ status: 'pending' });
  });

  test('a dead letter of an endpoint that is deleted, or whose application is, has the reason endpoint_not_found', async () => {
    const [id = ''] = await bury([await world.endpoint()], 'destination_not_found');
    const [other = ''] = await bury([await world.endpoint()], 'route_deleted');
    const [none = ''] = await bury([await world.endpoint()], 'payload_not_found');
    expect(await listed('?reason=endpoint_not_found')).toEqual([other, id]);
    expect(await listed('?reason=payload_not_found')).toEqual([none]);
    expect((await stats()).byReason).toEqual({ endpoint_not_found: 2, payload_not_found: 1 });
  });
});

describe('the list', () => {
  test('filters by reason, event type, application, endpoint and the time of the move', async () => {
    const [first, second] = [await world.endpoint(), await world.endpoint()];
    const third = await world.endpoint(second.applicationId);
    const [exhausted = ''] = await bury([first]);
    const [lost = ''] = await bury([second], 'circuit_breaker_exhausted', 'order.lost');
    const [undecryptable = ''] = await bury([third], 'secret_decryption_failed');
    await world.send([first]);
    await world.end(delivered);
    expect(await listed()).toEqual([undecryptable, lost, exhausted]);
    for (const [query, ids] of [
      ['reason=max_retries_exceeded', [exhausted]],
      ['reason=secret_decryption_failed', [undecryptable]],
      ['reason=circuit_breaker_exhausted', [lost]],
      ['eventType=order.lost', [lost]],
      [`applicationId=${second.applicationId}`, [undecryptable, lost]],
      [`endpointId=${third.id}`, [undecryptable]],
      [`id=${exhausted},${lost},msg_none`, [lost, exhausted]],
      [`id=${exhausted},${lost}&reason=circuit_breaker_exhausted`, [lost]],
      [`id=${exhausted}&endDate=2020-01-01T00:00:00Z`, []],
      [`applicationId=${second.applicationId}&endpointId=${second.id}`, [lost]],
      ['startDate=2020-01-01T00:00:00Z', [undecryptable, lost, exhausted]],
      ['endDate=2020-01-01T00:00:00Z', []],
    ] as const)
      expect([query, await listed(`?${query}`)]).toEqual([query, ids]);
    const { dlqMovedAt } = await message(lost);
    // Others are not read.
    const { body } = await world.facade.request('GET', `/api/outbound-messages/dlq/messages?id=${exhausted}`);
    expect(body.pagination).toEqual({ hasMore: false, nextCursor: null, scanned: 1 });
    expect(await listed(`?startDate=${dlqMovedAt}&endDate=${dlqMovedAt}`)).toContain(lost);
  });

  test('the list means the time of the move, not that of the message', async () => {
    const [early = ''] = await world.send([await world.endpoint()]);
    await world.end({ type: 'retry', attempt: failure, delayMs: 0 });
    const [late = ''] = await bury([await world.endpoint()]);
    await world.queue.promote();
    await world.end(dead);
    expect(await listed()).toEqual([early, late]);
  });

  test('the list continues by cursor, each once, also while others come', async () => {
    const target = await world.endpoint();
    const ids: string[] = [];
    for (let i = 0; i < 25; i++) ids.push(...(await bury([target])));
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { body } = await call('GET', `/messages?limit=10${cursor === '' ? '' : `&cursor=${cursor}`}`);
      seen.push(...idsOf(body.data));
      cursor = body.pagination.nextCursor;
      await bury([target]);
    }
    expect(seen).toEqual(ids.reverse());
  });

  test('the list continues by cursor while what was shown, and what is not yet, is archived, retried or pruned: what stays comes once', async () => {
    const target = await world.endpoint();
    const ids: string[] = [];
    const buryMore = async (count: number) => {
      for (let i = 0; i < count; i++) ids.push(...(await bury([target])));
    };
    await buryMore(3);
    // What comes now is younger by an hour.
    const hourMs = 3_600_000;
    await world.facade.redis.client.hset('test:{s0}:ctl', hashFields.control.newestIndexMs, Date.now() + hourMs);
    await buryMore(9);
    const first = (await call('GET', '/messages?limit=4')).body;
    expect(idsOf(first.data)).toEqual(ids.reverse().slice(0, 4));
    for (const id of [ids[0], ids[4]]) expect((await call('DELETE', `/${id}`)).status).toBe(200);
    for (const id of [ids[1], ids[5]]) expect((await call('POST', `/${id}/retry`)).status).toBe(201);
    await world.prune(-hourMs / 2);
    const isLetter = await Promise.all(ids.map(async (id) => (await message(id))?.status === 'dlq'));
    expect(isLetter).toEqual(ids.map((_, i) => i !== 0 && i !== 4 && i < 9));
    const rest = (await call('GET', `/messages?limit=10&cursor=${first.pagination.nextCursor}`)).body;
    expect(idsOf(rest.data)).toEqual(ids.slice(5, 9));
    expect(rest.pagination).toEqual({ hasMore: false, nextCursor: null, scanned: expect.any(Number) });
  });

  test.each([
    ['reason=unknown', 'reason'],
    ['startDate=yesterday', 'startDate'],
    ['startDate=2026-02-01T00:00:00Z&endDate=2026-01-01T00:00:00Z', 'endDate'],
    ['limit=101', 'limit'],
    ['cursor=forged', 'cursor'],
  ])('the list with %s is 400', async (query, field) => {
    const { status, body } = await call('GET', `/messages?${query}`);
    expect([status, body.error, Object.keys(body.details)]).toEqual([400, 'Invalid input', [field]]);
  });
});

test('the statistics name the endpoints with the most dead letters', async () => {
  const [one, two] = [await world.endpoint(), await world.endpoint()];
  await bury([one, two]);
  await bury([two]);
  const byEndpoint = [
    { endpointId: two.id, endpointUrl: two.url, count: 2 },
    { endpointId: one.id, endpointUrl: one.url, count: 1 },
  ];
  expect(await stats()).toEqual({ total: 3, byReason: { max_retries_exceeded: 3 }, topFailingEndpoints: byEndpoint, byEndpoint });
});

describe('many at once', () => {
  test('many at once are retried: those that are no dead letters are skipped', async () => {
    const ids = await bury([await world.endpoint(), await world.endpoint()]);
    const [pending = ''] = await world.send([await world.endpoint()]);
    const { status, body } = await call('POST', '/retry-bulk', { messageIds: [...ids, ids[0], pending, 'unknown'] });
    expect([status, body.data]).toEqual([
      200,
      {
        queued: 2,
        skipped: 2,
        messages: ids.map((originalMessageId) => ({ originalMessageId, newMessageId: expect.stringMatching(/^msg_/) })),
      },
    ]);
    expect(await world.end(delivered)).toEqual(
      expect.arrayContaining(body.data.messages.map(({ newMessageId }: { newMessageId: string }) => newMessageId)),
    );
    expect(await listed()).toHaveLength(2);
  });

  test('many at once are archived: those that are no dead letters are left alone', async () => {
    const ids = await bury([await world.endpoint(), await world.endpoint()]);
    const [pending = ''] = await world.send([await world.endpoint()]);
    const { status, body } = await call('DELETE', '/bulk', { messageIds: [...ids, ids[0], pending, 'unknown'] });
    expect([status, body]).toEqual([200, { success: true, archived: 2, deleted: 2 }]);
    expect(await listed()).toEqual([]);
    expect(await message(pending)).toMatchObject({ status: 'pending' });
  });

  test('many at once are at most 100', async () => {
    const messageIds = Array.from({ length: 101 }, (_, i) => `msg_${i}`);
    for (const [method, path] of [
      ['POST', '/retry-bulk'],
      ['DELETE', '/bulk'],
    ] as const) {
      for (const body of [{ messageIds }, { messageIds: [] }, {}]) {
        const answer = await call(method, path, body);
        expect([answer.status, Object.keys(answer.body.details)]).toEqual([400, ['messageIds']]);
      }
      expect((await call(method, path, { messageIds: messageIds.slice(1) })).status).toBe(200);
    }
  });

  test('many at once count as messages of the month: above it none is queued', async () => {
    const spec = { namespace: 'metered', plan: 'free' as const, limits: { monthlyMessages: 3 } };
    await world.facade.store.apply({ kind: 'Organization', metadata: { name: 'metered' }, spec }, { manager: 'kubectl' });
    await eventually(() => world.facade.store.get('Namespace', { name: 'metered' }));
    const key = await world.facade.addKey('metered');
    const org = await world.facade.organizationId('metered');
    const { id: applicationId } = await world.store.createApplication({ org, name: 'Customer', shard: 0 });
    const endpoint = await world.store.createEndpoint(newWebhookEndpoint(applicationId, { org }));
    const events = [1, 2, 3].map(() => newWebhookEvent(org, [endpoint]));
    for (const event of events) await world.facade.acceptor.accept(event);
    await world.end(dead);
    const [first = '', second = '', third = ''] = events.map(({ targets }) => targets[0]?.messageId ?? '');
    const post = async (path: string, ...messageIds: string[]) => {
      const body = messageIds.length === 0 ? undefined : { messageIds };
      const { status, body: answer } = await world.facade.request('POST', `/api/outbound-messages/${path}`, { key, body });
      return status === 200 ? answer.data.queued : status === 429 ? answer.error : status;
    };
    const isOver = 'Monthly limit exceeded';
    // Skipped records do not count, not even before they are read.
    expect(await post('dlq/retry-bulk', ...Array.from({ length: 4 }, (_, i) => `unknown ${i}`))).toBe(0);
    expect([await post(`dlq/${first}/retry`), await post(`${second}/replay`)]).toEqual([201, 201]);
    expect([await post('dlq/retry-bulk', first, second), await post('dlq/retry-bulk', third)]).toEqual([isOver, 1]);
    expect([await post(`dlq/${third}/retry`), await post(`${third}/replay`), await post('dlq/retry-bulk', third)]).toEqual([
      isOver,
      isOver,
      isOver,
    ]);
    expect((await world.facade.request('GET', '/api/outbound-messages', { key })).body.data).toHaveLength(6);
  });
});

describe('under an Idempotency-Key', () => {
  test.each<[string, (ids: string[]) => string, (ids: string[]) => object | undefined]>([
    ['a retry', ([id]) => `dlq/${id}/retry`, () => undefined],
    ['a replay', ([id]) => `${id}/replay`, () => undefined],
    ['a retry of many', () => 'dlq/retry-bulk', (messageIds) => ({ messageIds })],
  ])('%s that was broken off is not done again by the next request, which has its answer', async (name, path, body) => {
    const ids = await bury([await world.endpoint(), await world.endpoint()]);
    const key = name.replaceAll(' ', '-');
    const post = () =>
      world.facade.request('POST', `/api/outbound-messages/${path(ids)}`, { body: body(ids), headers: { 'idempotency-key': key } });
    const first = await post();
    expect(Math.floor(first.status / 100)).toBe(2);
    const queued = await world.end(delivered);
    await call('DELETE', '/bulk', { messageIds: ids });
    await breakOff(world.facade, key);
    const second = await post();
    expect([second.status, second.body]).toEqual([first.status, first.body]);
    expect(second.headers.get('idempotent-replayed')).toBeNull();
    expect(await world.end(delivered)).toEqual([]);
    expect(queued.length).toBeGreaterThan(0);
  });
});

test('a viewer reads dead letters, and changes none', async () => {
  const [id = ''] = await bury([await world.endpoint()]);
  const key = await world.facade.addKey('acme', { role: 'viewer' });
  const asViewer = async (method: string, path: string) =>
    (await world.facade.request(method, `/api/outbound-messages/${path}`, { key })).status;
  expect(await asViewer('GET', 'dlq/messages')).toBe(200);
  expect(await asViewer('POST', `dlq/${id}/retry`)).toBe(403);
  expect(await asViewer('DELETE', `dlq/${id}`)).toBe(403);
  expect(await asViewer('POST', `${id}/replay`)).toBe(403);
});
