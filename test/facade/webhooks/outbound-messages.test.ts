import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { parseWebhookId } from '../../../src/data/webhooks/webhook-ids.ts';
import { webhookKeys } from '../../../src/data/webhooks/webhook-keys.ts';
import { sampleDetail, shownSampleDetail } from '../../support/attempt-detail.ts';
import { dead, delivered, failure, settleAll, takeFrom } from '../../support/queue-worker.ts';
import { newWebhookEvent } from '../../support/webhook-messages.ts';
import { dropped, idsOf, later, type MessagesWorld, soon, startMessagesWorld } from './messages-world.ts';

let world: MessagesWorld;
beforeAll(async () => {
  world = await startMessagesWorld();
});
afterAll(() => world.stop());
beforeEach(() => world.clear());

const call = (method: string, path: string, body?: object) => world.facade.request(method, `/api/outbound-messages${path}`, { body });
const read = async (path: string) => (await call('GET', path)).body.data;

describe('a message', () => {
  test('a message shows its event, endpoint, application, subscription and what became of it', async () => {
    const target = await world.endpoint();
    const event = newWebhookEvent(world.org, [target], { webhook: { labels: { country: 'at' } } });
    await world.facade.acceptor.accept(event);
    const id = event.targets[0]?.messageId ?? '';
    const shown = {
      id,
      organizationId: world.org,
      eventId: event.id,
      eventType: 'order.paid',
      applicationId: target.applicationId,
      applicationName: expect.stringMatching(/^Customer/),
      endpointId: target.id,
      endpointUrl: target.url,
      subscriptionId: `sub_of_${target.id}`,
      status: 'pending',
      attempts: 0,
      maxAttempts: 8,
      nextAttemptAt: null,
      waitingFor: 'queue',
      waitingUntil: null,
      lastResponseStatus: null,
      lastErrorType: null,
      lastErrorMessage: null,
      labels: { country: 'at' },
      replayedFrom: null,
      dlqReason: null,
      dlqMovedAt: null,
      dlqRetryCount: 0,
      dlqLastRetryAt: null,
      createdAt: expect.any(String),
      completedAt: null,
      expiresAt: null,
    };
    expect(await read(`/${id}`)).toEqual(shown);
    await world.end(delivered);
    const ended = { ...shown, status: 'success', waitingFor: null, attempts: 1, lastResponseStatus: 200, completedAt: expect.any(String) };
    expect(await read(`/${id}`)).toEqual(ended);
    expect(await read('')).toEqual([ended]);
  });

  test('a message goes through every status', async () => {
    const statuses: string[] = [];
    const [id = ''] = await world.send([await world.endpoint()]);
    const look = async () => statuses.push((await read(`/${id}`)).status);
    await look();
    const jobs = await takeFrom(world.queue, 'w1', 1);
    await look();
    await settleAll(world.queue, 'w1', jobs, { type: 'retry', attempt: failure, delayMs: 0 });
    await look();
    await world.queue.promote();
    await world.end(dead);
    await look();
    await call('DELETE', `/dlq/${id}`);
    await look();
    const [other = ''] = await world.send([await world.endpoint()]);
    await world.end(delivered);
    statuses.push((await read(`/${other}`)).status);
    expect(statuses).toEqual(['pending', 'processing', 'failed', 'dlq', 'exhausted', 'success']);
  });

  test('a message that its transform refused, or its filter, is exhausted and reports it', async () => {
    for (const type of ['transform_failed', 'filtered'] as const) {
      const [id = ''] = await world.send([await world.endpoint()]);
      await world.end(dropped(type));
      expect(await read(`/${id}`)).toMatchObject({ status: 'exhausted', lastErrorType: type, lastErrorMessage: 'why', attempts: 0 });
    }
  });

  test('a message shows when it is tried again', async () => {
    const [id = ''] = await world.send([await world.endpoint()]);
    await world.end(later);
    const { nextAttemptAt, lastErrorType, lastErrorMessage, lastResponseStatus } = await read(`/${id}`);
    expect(Date.parse(nextAttemptAt)).toBeGreaterThan(Date.now() + 3_000_000);
    expect([lastErrorType, lastErrorMessage, lastResponseStatus]).toEqual(['http_error', 'status 500', 500]);
  });

  describe('of what is deleted keeps the name of the application and the URL of the endpoint as they were last', () => {
    test.each(['endpoint', 'application', 'endpoint and then its application'])('an %s', async (what) => {
      const target = await world.endpoint();
      const [id = ''] = await world.send([target]);
      await world.end(dead);
      await world.store.updateEndpoint(world.org, target.id, { url: 'https://moved.example/hooks' });
      await world.store.updateApplication(world.org, target.applicationId, { name: 'Renamed' });
      if (what.startsWith('endpoint')) await world.store.deleteEndpoint(world.org, target.id);
      if (what.endsWith('application')) await world.store.deleteApplication(world.org, target.applicationId);
      const other = await world.store.createApplication({ org: world.org, name: 'Another', shard: 0 });
      await world.endpoint(other.id);
      const shown = { endpointId: target.id, endpointUrl: 'https://moved.example/hooks', applicationName: 'Renamed' };
      expect(await read(`/${id}`)).toMatchObject(shown);
      expect((await read(`?applicationId=${target.applicationId}`)).map(({ endpointUrl }: { endpointUrl: string }) => endpointUrl)).toEqual(
        [shown.endpointUrl],
      );
      expect(await read(`?endpointId=${target.id}&status=dlq`)).toMatchObject([shown]);
      expect(await read(`/dlq/messages?endpointId=${target.id}`)).toMatchObject([shown]);
      expect((await read('/dlq/stats')).topFailingEndpoints).toContainEqual({
        endpointId: target.id,
        endpointUrl: shown.endpointUrl,
        count: 1,
      });
    });
  });

  test('a message of an application that is deleted while much is below it names its endpoints before they are swept', async () => {
    const target = await world.endpoint();
    const [id = ''] = await world.send([target]);
    const base = webhookKeys('test:', world.org).declared[0].replace(/ctl$/, '');
    await world.facade.redis.client.hdel(`${base}ap`, String(parseWebhookId('application', target.applicationId)?.number));
    expect(await read(`/${id}`)).toMatchObject({ endpointUrl: target.url });
  });

  test('a message keeps a bounded number of names of what is deleted', async () => {
    const { client } = world.facade.redis;
    const base = webhookKeys('test:', world.org).declared[0].replace(/ctl$/, '');
    const many = Array.from({ length: 10_050 }, (_, i) => `filler${i}`);
    await client.hset(`${base}past`, Object.fromEntries(many.map((field) => [field, 'x'])));
    await client.zadd(`${base}pt`, ...many.flatMap((field) => [1, field]));
    const target = await world.endpoint();
    const [id = ''] = await world.send([target]);
    await world.store.deleteEndpoint(world.org, target.id);
    expect((await read(`/${id}`)).endpointUrl).toBe(target.url);
    const sizes = async () => [await client.hlen(`${base}past`), await client.zcard(`${base}pt`)];
    const [left = 0] = await sizes();
    expect(left).toBeLessThanOrEqual(10_000);
    expect(await sizes()).toEqual([left, left]);
    await client.del(`${base}past`, `${base}pt`);
  });

  test.each([
    ['applicationId', 'app_aaaaaaaaaaaaaaaaaaaaaaaaaa', 'application'],
    ['endpointId', 'ep_aaaaaaaaaaaaaaaaaaaaaaaaaa', 'endpoint'],
    ['endpointId', 'nonsense', 'endpoint'],
  ])('an unknown %s is 404 in every list, export and figure', async (name, wanted, noun) => {
    const paths = ['outbound-messages', 'outbound-messages/dlq/messages', 'webhooks/analytics', 'webhook-subscriptions'];
    if (name === 'applicationId') paths.push('webhook-endpoints', 'outbound-messages/export', 'outbound-messages/export?format=csv');
    for (const path of paths) {
      const { status, body } = await world.facade.request('GET', `/api/${path}${path.includes('?') ? '&' : '?'}${name}=${wanted}`);
      expect([path, status, body.error]).toEqual([path, 404, 'Not found']);
      expect(body.message).toMatch(new RegExp(`^There is no (such )?${noun}`));
    }
  });

  test('an event type that the organization never had is 404 in every list and export, also among others; one that was deleted is known', async () => {
    await world.send([await world.endpoint()], { eventType: 'order.made' });
    const paths = ['outbound-messages', 'outbound-messages/dlq/messages', 'webhook-events', 'outbound-messages/export'];
    for (const path of paths) {
      const ask = (eventType: string) => world.facade.request('GET', `/api/${path}?eventType=${eventType}`);
      expect([path, (await ask('order.made')).status]).toEqual([path, 200]);
      const isSingle = path.endsWith('export');
      for (const wanted of ['order.unknown', ...(isSingle ? [] : ['order.made,order.unknown'])]) {
        const { status, body } = await ask(wanted);
        expect([path, status, body.error, body.message]).toEqual([path, 404, 'Not found', 'There is no event type "order.unknown".']);
      }
    }
    const cancelled = await call('POST', '/cancel', { filter: { eventType: 'order.unknown' }, dryRun: true });
    expect(cancelled.status).toBe(404);
    expect((await world.facade.request('GET', '/api/stream?eventType=order.unknown')).status).toBe(404);
  });

  test('the id of another organization is unknown, and so is that of a part of Redis', async () => {
    const target = await world.endpoint();
    await world.send([target]);
    await world.facade.addOrganization('stranger');
    const key = await world.facade.addKey('stranger');
    for (const wanted of [target.id, `ev:+${world.org}`, `dead:${world.org}`]) {
      const { status } = await world.facade.request('GET', `/api/outbound-messages?endpointId=${encodeURIComponent(wanted)}`, { key });
      expect([wanted, status]).toEqual([wanted, 404]);
    }
  });

  test('a message of a part of an event shows the event itself', async () => {
    const [id = ''] = await world.send([await world.endpoint()], { webhook: { partOf: 'evt_whole' } });
    expect(await read(`/${id}`)).toMatchObject({ eventId: 'evt_whole' });
  });

  test('a message is unknown to other organizations and to the delivery configuration API', async () => {
    const [id = ''] = await world.send([await world.endpoint()]);
    await world.facade.addOrganization('other');
    const key = await world.facade.addKey('other');
    for (const path of [`/${id}`, `/${id}/attempts`]) {
      const { status, body } = await world.facade.request('GET', `/api/outbound-messages${path}`, { key });
      expect([status, body]).toEqual([404, { error: 'Not found', message: 'There is no such message.', details: {} }]);
    }
    expect((await world.facade.request('GET', '/api/outbound-messages', { key })).body.data).toEqual([]);
    expect((await world.facade.request('GET', `/api/deliveries/${id}`)).status).toBe(404);
    expect((await call('GET', '/nonsense')).status).toBe(404);
  });
});

test('attempts of a message have all fields, the first first', async () => {
  const [id = ''] = await world.send([await world.endpoint()]);
  await world.end({
    type: 'retry',
    attempt: { ...failure, startedAtMs: 1000, durationMs: 7, responseBody: 'no', detail: sampleDetail },
    delayMs: 0,
  });
  await world.queue.promote();
  await world.end(delivered);
  const attempts = await read(`/${id}/attempts`);
  expect(attempts).toEqual([
    {
      id: `${id.replace('msg_', 'att_')}_1`,
      messageId: id,
      attemptNumber: 1,
      status: 'failed',
      responseStatus: 500,
      responseTimeMs: 7,
      responseBody: 'no',
      errorType: 'http_error',
      errorMessage: 'status 500',
      createdAt: '1970-01-01T00:00:01.000Z',
      completedAt: '1970-01-01T00:00:01.007Z',
      payloadForm: 'full',
      signatureScheme: 'hmac-sha256',
      detail: shownSampleDetail,
    },
    expect.objectContaining({ attemptNumber: 2, status: 'success', responseStatus: 200, responseBody: 'ok', errorType: null }),
  ]);
});

describe('the list', () => {
  test('filters by status, event type, application and endpoint', async () => {
    const [first, second] = [await world.endpoint(), await world.endpoint()];
    const third = await world.endpoint(second.applicationId);
    const [ended = ''] = await world.send([first]);
    await world.end(delivered);
    const [dlq = ''] = await world.send([first], { eventType: 'order.lost' });
    await world.end(dead);
    const [failing = ''] = await world.send([second]);
    await world.end(later);
    const [pending = ''] = await world.send([third]);
    const listed = async (query: string) => idsOf(await read(`?${query}`));
    expect(await listed('')).toEqual([pending, failing, dlq, ended]);
    expect(await listed('status=success')).toEqual([ended]);
    expect(await listed('status=dlq')).toEqual([dlq]);
    expect(await listed('status=failed')).toEqual([failing]);
    expect(await listed('status=pending')).toEqual([pending]);
    expect(await listed('status=processing')).toEqual([]);
    await call('DELETE', `/dlq/${dlq}`);
    expect(await listed('status=exhausted')).toEqual([dlq]);
    expect(await listed('eventType=order.lost')).toEqual([dlq]);
    expect(await listed(`applicationId=${second.applicationId}`)).toEqual([pending, failing]);
    expect(await listed(`endpointId=${first.id}`)).toEqual([dlq, ended]);
    expect(await listed(`endpointId=${first.id}&applicationId=${second.applicationId}`)).toEqual([]);
    expect(await listed(`endpointId=${first.id}&status=success`)).toEqual([ended]);
    expect(await listed('status=success,failed')).toEqual([failing, ended]);
    expect(await listed('status=success&status=failed')).toEqual([failing, ended]);
    expect(await listed(`id=${ended},${pending}&id=${dlq}&status=success,pending`)).toEqual([pending, ended]);
    expect(await listed('responseStatus=5xx')).toEqual([failing, dlq]);
    expect(await listed('errorType=timeout')).toEqual([]);
    expect(await listed('attemptsMax=0')).toEqual([pending]);
    expect(await listed('failedFrom=1970-01-01&failedTo=2200-01-01')).toEqual([failing, dlq]);
    expect(await listed('failedFrom=1970-01-02')).toEqual([]);
    expect(await listed('to=1970-01-01')).toEqual([]);
    expect(await listed(`where=${encodeURIComponent('event.type == "order.lost"')}`)).toEqual([dlq]);
  });

  test.each(['', '/dlq/messages'])('the list %s names the filter that is wrong', async (path) => {
    for (const [name, value] of [
      ['errorType', 'broken'],
      ['responseStatus', '42'],
      ['attemptsMax', '0&attemptsMin=1'],
      ['failedTo', '2026-01-01&failedFrom=2026-01-02'],
      ['from', 'today'],
      ['where', '1'],
    ] as const) {
      const { status, body } = await call('GET', `${path}?${name}=${value}`);
      expect([status, Object.keys(body.details ?? {})]).toEqual([400, [name]]);
    }
  });

  test('the list continues by cursor, each message once, also while others are sent', async () => {
    const target = await world.endpoint();
    const sent: string[] = [];
    for (let i = 0; i < 130; i++) sent.push(...(await world.send([target])));
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { body } = await call('GET', `?limit=30${cursor === '' ? '' : `&cursor=${cursor}`}`);
      seen.push(...idsOf(body.data));
      cursor = body.pagination.nextCursor;
      expect(body.pagination.hasMore).toBe(cursor !== null);
      await world.send([target]);
    }
    expect(seen).toEqual(sent.reverse());
    expect((await read('')).length).toBe(50);
  });

  test('the list continues by cursor while what was shown, and what is not yet, ends, is archived or pruned: what stays comes once', async () => {
    const target = await world.endpoint();
    const sent: string[] = [];
    const letters: string[] = [];
    for (let i = 0; i < 10; i++) {
      for (const outcome of [delivered, soon, dead]) {
        sent.push(...(await world.send([target])));
        const ended = await world.end(outcome);
        if (outcome === dead) letters.push(...ended);
      }
    }
    const first = (await call('GET', '?limit=10')).body;
    expect(idsOf(first.data)).toEqual(sent.reverse().slice(0, 10));
    await world.queue.promote();
    expect(await world.end(dead)).toHaveLength(10);
    for (const id of [letters[0], letters.at(-1)]) expect((await call('DELETE', `/dlq/${id}`)).status).toBe(200);
    await world.prune(3_600_000);
    const isThere = await Promise.all(sent.map(async (id) => (await call('GET', `/${id}`)).status === 200));
    expect([isThere.slice(0, 10).includes(false), isThere.slice(10).includes(false)]).toEqual([true, true]);
    const seen: string[] = [];
    for (let cursor: string | null = first.pagination.nextCursor; cursor !== null; ) {
      const { body } = await call('GET', `?limit=5&cursor=${cursor}`);
      seen.push(...idsOf(body.data));
      cursor = body.pagination.nextCursor;
    }
    expect(seen).toEqual(sent.filter((_, i) => i >= 10 && isThere[i]));
    expect(seen).toHaveLength(12);
  });

  test.each(['limit=0', 'limit=101', 'cursor=forged', 'status=queued'])('the list with %s is 400', async (query) => {
    const { status, body } = await call('GET', `?${query}`);
    expect([status, body.error, Object.keys(body.details)]).toEqual([400, 'Invalid input', [query.split('=')[0]]]);
  });
});

describe('a replay', () => {
  test('a replay of an ended message, or one between its attempts, is a new message of the same event', async () => {
    const outcomes = { success: delivered, failed: later, exhausted: dropped('transform_failed'), dlq: dead };
    for (const [status, outcome] of Object.entries(outcomes)) {
      const [id = ''] = await world.send([await world.endpoint()]);
      await world.end(outcome);
      const replay = await call('POST', `/${id}/replay`);
      const newMessageId = replay.body.data?.newMessageId;
      expect([replay.status, replay.body]).toEqual([201, { data: { originalMessageId: id, newMessageId, status: 'queued' } }]);
      const { eventId, subscriptionId } = await read(`/${id}`);
      expect(await read(`/${id}`)).toMatchObject({ status });
      expect(await read(`/${newMessageId}`)).toMatchObject({ status: 'pending', replayedFrom: id, eventId, subscriptionId });
      expect(await world.end(delivered)).toEqual([newMessageId]);
    }
  });

  test('a replay of what is under way is 409, of what has no payload any more 409 with payload_not_found', async () => {
    const [id = ''] = await world.send([await world.endpoint()]);
    const refused = async (status: string) => {
      const { status: code, body } = await call('POST', `/${id}/replay`);
      expect([code, body]).toEqual([409, { error: 'Conflict', message: expect.stringContaining(status), details: {} }]);
    };
    await refused('pending');
    const jobs = await takeFrom(world.queue, 'w1', 1);
    await refused('processing');
    expect(await read('')).toHaveLength(1);
    await settleAll(world.queue, 'w1', jobs, dead);
    await world.facade.redis.client.del(await world.facade.redis.client.keys('test:{s0}:e:*'));
    for (const path of [`/${id}/replay`, `/dlq/${id}/retry`]) {
      const { status, body } = await call('POST', path);
      expect([status, body]).toEqual([409, { error: 'Conflict', message: expect.stringContaining('payload_not_found'), details: {} }]);
    }
    expect(await read(`/${id}`)).toMatchObject({ eventType: null, labels: {} });
  });
});

test('the summary counts messages by their status', async () => {
  const target = await world.endpoint();
  const none = { pending: 0, processing: 0, success: 0, failed: 0, exhausted: 0, dlq: 0, total: 0 };
  expect(await read('/stats/summary')).toEqual(none);
  await world.send([target]);
  await world.end(delivered);
  await world.send([target, await world.endpoint()]);
  const [archived] = await world.end(dead);
  await call('DELETE', `/dlq/${archived}`);
  await world.send([target]);
  await world.end(dropped('transform_failed'));
  await world.send([target]);
  await world.end(dropped('filtered'));
  await world.send([target]);
  await world.end(later);
  await world.send([target]);
  await takeFrom(world.queue, 'w1', 1);
  await world.send([target, await world.endpoint()]);
  expect(await read('/stats/summary')).toEqual({ pending: 2, processing: 1, success: 1, failed: 1, exhausted: 3, dlq: 1, total: 9 });
});
