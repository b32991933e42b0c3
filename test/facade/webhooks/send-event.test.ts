import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { webhookOrganization } from '../../../src/core/webhook.ts';
import { RedisMessageReader } from '../../../src/data/history/message-reader.ts';
import type { DeliveryView } from '../../../src/data/shard/messages.ts';
import { RedisWebhookStore } from '../../../src/data/webhooks/redis-webhook-store.ts';
import type { NewWebhookSubscription, WebhookRateLimits } from '../../../src/data/webhooks/webhooks.ts';
import { systemClock } from '../../../src/runtime/system-clock.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/logger.ts';
import { newWebhookEndpoint } from '../../support/webhooks.ts';
import { type Answer, type FacadeWorld, startFacadeWorld } from '../facade-world.ts';

const prefix = 'test:';
let world: FacadeWorld;
let store: RedisWebhookStore;
let messages: RedisMessageReader;
let org: string;
let made = 0;

beforeAll(async () => {
  world = await startFacadeWorld();
  store = new RedisWebhookStore({ redis: world.redis.client, prefix, clock: systemClock, logger: silentLogger });
  messages = new RedisMessageReader({ redis: world.redis.client, prefix });
  org = await world.organizationId('acme');
});
afterAll(() => world?.stop());

async function eventType(more: object = {}): Promise<{ id: string; name: string }> {
  const { body } = await world.request('POST', '/api/event-types', { body: { name: `order.made${++made}`, ...more } });
  await eventually(async () => expect(await world.registry.getOfAny('eventType', body.data.id)).not.toBeNull());
  return body.data;
}
async function endpointOf(
  more: { rateLimits?: WebhookRateLimits; org?: string; shard?: number } = {},
): Promise<{ id: string; applicationId: string }> {
  const application = await store.createApplication({ org, name: 'Customer', shard: 0, ...more });
  const endpoint = await store.createEndpoint(
    newWebhookEndpoint(application.id, { org: application.org, url: `https://c${++made}.example/` }),
  );
  return { id: endpoint.id, applicationId: application.id };
}
const subscribe = (endpointId: string, eventTypeId: string, more: Partial<NewWebhookSubscription> = {}) =>
  store.createSubscription({ org, endpointId, eventTypeId, ...more });
const send = (body: object, options: { key?: string; headers?: Record<string, string>; rawBody?: string } = {}) =>
  world.request('POST', '/api/send-event', options.rawBody === undefined ? { body, ...options } : options);
/** Moves the dedup key that names the event so far into the past, as time does: the time is that of Redis. */
async function ageMark(eventId: string, ms: number): Promise<void> {
  const { client } = world.redis;
  for (const key of await client.keys(`test:{intake:${org}}:m:*`))
    for (const [mark, stored] of Object.entries(await client.hgetall(key))) {
      const [, atMs = '', named] = /^a(\d+) (.+)$/.exec(stored) ?? [];
      if (named !== eventId) continue;
      const agedMs = Number(atMs) - ms;
      const aged = key.replace(/:m:\d+:/, `:m:${Math.floor(agedMs / 21_600_000)}:`);
      await client.hdel(key, mark);
      await client.hset(aged, mark, `a${agedMs} ${eventId}`);
      return;
    }
  throw new Error(`no mark of an accepted event names ${eventId}`);
}
const messagesOf = (eventId: string): Promise<DeliveryView[]> => messages.deliveriesOfEvent(webhookOrganization(org), eventId);

describe('an event', () => {
  test('an event is stored, as it was sent, with a message for each endpoint that subscribes to its type', async () => {
    const [type, other] = [await eventType(), await eventType()];
    const endpoints = [await endpointOf(), await endpointOf(), await endpointOf()];
    const subscription = await subscribe(endpoints[0]?.id ?? '', type.id);
    await subscribe(endpoints[1]?.id ?? '', type.id);
    await subscribe(endpoints[2]?.id ?? '', other.id);
    const payload = '{ "total":1.50, "id" : "o\\u002d1" }';
    const rawBody = `{"eventType":"${type.name}","payload":${payload},"labels":{"country":"at","paid":true},"metadata":{"by":"me"}}`;
    const { status, body } = await send({}, { rawBody });
    expect([status, body]).toEqual([
      201,
      {
        data: {
          eventId: expect.stringMatching(/^evt_/),
          messagesQueued: 2,
          endpoints: [
            { id: endpoints[0]?.id, url: expect.stringMatching(/^https:\/\/c/) },
            { id: endpoints[1]?.id, url: expect.stringMatching(/^https:\/\/c/) },
          ],
        },
      },
    ]);
    const { eventId } = body.data;
    const event = await messages.event(webhookOrganization(org), eventId);
    expect(event).toMatchObject({ sourceId: type.id, source: type.name, contentType: 'application/json' });
    expect(event?.payload?.toString()).toBe(payload);
    expect(event?.webhook).toMatchObject({ labels: { country: 'at', paid: 'true' }, metadata: { by: 'me' }, applicationId: null });
    const queued = await messagesOf(eventId);
    expect(queued.map(({ routeId, destinationId, status: state, maxAttempts }) => [routeId, destinationId, state, maxAttempts])).toEqual(
      endpoints.slice(0, 2).map(({ id, applicationId }) => [applicationId, id, 'pending', 8]),
    );
    expect(subscription.id).toMatch(/^sub_/);
    expect((await world.request('GET', '/api/events')).body.data).toEqual([]);
  });

  test('an event that nobody wants is stored with no message', async () => {
    const type = await eventType();
    const { status, body } = await send({ eventType: type.name, payload: null });
    expect([status, body.data]).toEqual([201, { eventId: expect.any(String), messagesQueued: 0, endpoints: [] }]);
    expect((await messages.event(webhookOrganization(org), body.data.eventId))?.payload?.toString()).toBe('null');
    const read = await world.request('GET', `/api/webhook-events/${body.data.eventId}`);
    expect(read.body.data).toMatchObject({ payload: null, payloadEncoding: 'json' });
  });

  test('an event finds a subscription that was made just before, and misses one that is disabled', async () => {
    const type = await eventType();
    const endpoint = await endpointOf();
    const queued = async () => (await send({ eventType: type.name, payload: 1 })).body.data.messagesQueued;
    expect(await queued()).toBe(0);
    const { id } = await subscribe(endpoint.id, type.id);
    expect(await queued()).toBe(1);
    await store.updateSubscription(org, id, { isEnabled: false });
    expect(await queued()).toBe(0);
    await store.updateSubscription(org, id, { isEnabled: true });
    await store.updateEndpoint(org, endpoint.id, { isDisabled: true });
    expect(await queued()).toBe(0);
  });

  test('an event goes only where its labels, and the filter expression, are met', async () => {
    const type = await eventType();
    const [labelled, filtered] = [await endpointOf(), await endpointOf()];
    await subscribe(labelled.id, type.id, { labelFilters: { country: ['at', 'de'] } });
    await subscribe(filtered.id, type.id, { filterExpression: 'event.data.total > 10.0 && metadata.by == "shop"' });
    const sentTo = async (more: object) =>
      (await send({ eventType: type.name, payload: { total: 5 }, ...more })).body.data.endpoints.map(({ id }: { id: string }) => id);
    expect(await sentTo({ labels: { country: 'de' } })).toEqual([labelled.id]);
    expect(await sentTo({ labels: { country: 'fr' } })).toEqual([]);
    expect(await sentTo({ payload: { total: 11 }, metadata: { by: 'shop' } })).toEqual([filtered.id]);
  });

  test('an event whose filter expression fails does not match, which the subscription shows until it works again', async () => {
    const type = await eventType();
    const endpoint = await endpointOf();
    const { id } = await subscribe(endpoint.id, type.id, { filterExpression: 'event.data.total > 10.0' });
    expect((await send({ eventType: type.name, payload: {} })).body.data.messagesQueued).toBe(0);
    await eventually(async () => expect((await store.subscription(org, id))?.lastFilterError).toMatch(/total/));
    expect((await send({ eventType: type.name, payload: { total: 11 } })).body.data.messagesQueued).toBe(1);
    await eventually(async () => expect((await store.subscription(org, id))?.lastFilterError).toBeNull());
  });

  test('an event can be for an application, or for endpoints, alone', async () => {
    const type = await eventType();
    const endpoints = [await endpointOf(), await endpointOf(), await endpointOf()];
    for (const { id } of endpoints) await subscribe(id, type.id);
    const ids = endpoints.map(({ id }) => id);
    const sentTo = async (more: object) =>
      (await send({ eventType: type.name, payload: 1, ...more })).body.data.endpoints.map(({ id }: { id: string }) => id);
    expect(await sentTo({ applicationId: endpoints[1]?.applicationId })).toEqual([ids[1]]);
    expect(await sentTo({ endpointId: ids[2] })).toEqual([ids[2]]);
    expect(await sentTo({ endpointIds: [ids[2], ids[0], ids[2]] })).toEqual([ids[2], ids[0]]);
    expect(await sentTo({ endpointId: ids[0], applicationId: endpoints[1]?.applicationId })).toEqual([]);
    for (const more of [{ applicationId: 'app_x' }, { endpointId: 'ep_x' }, { endpointIds: [ids[0], 'ep_x', ids[1]] }]) {
      const { status, body } = await send({ eventType: type.name, payload: 1, ...more });
      expect([status, body.error, body.message]).toEqual([404, 'Not found', expect.stringMatching(/no (application app|endpoint ep)_x/)]);
    }
    const unsubscribed = await endpointOf();
    expect(await sentTo({ endpointIds: [unsubscribed.id, ids[0]] })).toEqual([ids[0]]);
  });
});

describe('an idempotency key', () => {
  test('an idempotency key makes one event of many identical requests at once; each gets the same answer', async () => {
    const type = await eventType();
    await subscribe((await endpointOf()).id, type.id);
    const body = { eventType: type.name, payload: { a: 1 }, idempotencyKey: 'order-17' };
    const answers = await Promise.all(Array.from({ length: 64 }, () => send(body)));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array.from({ length: 63 }, () => 200), 201]);
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(await messagesOf(answers[0]?.body.data.eventId)).toHaveLength(1);
    const later = await send({ ...body, payload: 'another' });
    expect([later.status, later.text]).toEqual([200, answers[0]?.text]);
    expect((await send({ ...body, idempotencyKey: 'order-18' })).status).toBe(201);
  });
});

describe('an event that was stored before with its idempotency key', () => {
  test('an event that was stored before with its idempotency key is answered as then, whatever has become of its type and its targets', async () => {
    const type = await eventType();
    const [endpoint, deleted] = [await endpointOf(), await endpointOf()];
    await subscribe(endpoint.id, type.id);
    await subscribe(deleted.id, type.id);
    const body = { eventType: type.name, payload: 1, idempotencyKey: 'of a type that changes', endpointIds: [endpoint.id, deleted.id] };
    const first = await send(body);
    expect([first.status, first.body.data.messagesQueued]).toEqual([201, 2]);
    const unchanged = first.body.data;
    await store.updateEndpoint(org, endpoint.id, { url: 'https://moved.example/' });
    await store.deleteEndpoint(org, deleted.id);
    expect((await send(body)).body.data).toEqual(unchanged);
    await world.request('PATCH', `/api/event-types/${type.id}`, { body: { schema: '{"type":"object"}' } });
    await eventually(async () => expect((await send({ eventType: type.name, payload: 1 })).status).toBe(400));
    expect([(await send(body)).status, (await send(body)).body.data]).toEqual([200, unchanged]);
    await world.request('DELETE', `/api/event-types/${type.id}`);
    await eventually(async () => expect((await send({ eventType: type.name, payload: {} })).status).toBe(404));
    expect([(await send(body)).status, (await send(body)).body.data]).toEqual([200, unchanged]);
  });

  test('an event that was stored before with its idempotency key is answered the same however its messages are spread over shards, and with its id alone when it is gone', async () => {
    const type = await eventType();
    const shards = [2, 0, 1, 2, 0];
    for (const shard of shards) await subscribe((await endpointOf({ shard })).id, type.id);
    const body = { eventType: type.name, payload: 1, idempotencyKey: 'in several shards' };
    const [one, two] = await Promise.all([send(body), send(body)]);
    expect([[one.status, two.status].sort(), two.text]).toEqual([[200, 201], one.text]);
    expect(one.body.data.endpoints).toHaveLength(shards.length);
    expect((await send(body)).text).toBe(one.text);
    const key = one.body.data.eventId.slice(-25);
    expect(await world.redis.client.del(...['e', 'x', 'an'].map((kind) => `test:{s2}:${kind}:${key}`))).toBe(3);
    const { status, body: late } = await send(body);
    expect([status, late.data]).toEqual([200, { eventId: one.body.data.eventId, messagesQueued: 0, endpoints: [] }]);
  });

  test('an event that was stored before with its idempotency key is answered so for 24 hours, and then it is another event', async () => {
    const type = await eventType();
    await subscribe((await endpointOf()).id, type.id);
    const body = { eventType: type.name, payload: 1, idempotencyKey: 'for a day' };
    const first = await send(body);
    const { eventId } = first.body.data;
    const dayMs = 86_400_000;
    await eventually(() => ageMark(eventId, dayMs - 60_000));
    expect([(await send(body)).status, (await send(body)).text]).toEqual([200, first.text]);
    const keptMs = await world.redis.client.pttl(`test:{s0}:an:${eventId.slice(-25)}`);
    expect([keptMs > dayMs - 60_000, keptMs <= dayMs]).toEqual([true, true]);
    await ageMark(eventId, 60_000);
    const next = await send(body);
    expect([next.status, next.body.data.eventId === eventId]).toEqual([201, false]);
  });

  test('an event that was stored before with its idempotency key counts against no limit of an application', async () => {
    const type = await eventType();
    const endpoint = await endpointOf({ rateLimits: { perSecond: 100, perMinute: 1, perHour: 100 } });
    await subscribe(endpoint.id, type.id);
    const body = { eventType: type.name, payload: 1, applicationId: endpoint.applicationId, idempotencyKey: 'within limits' };
    expect((await send(body)).status).toBe(201);
    expect((await send(body)).status).toBe(200);
    expect((await send({ ...body, idempotencyKey: 'beyond limits' })).status).toBe(429);
    expect((await send({ ...body, idempotencyKey: 'beyond limits' })).status).toBe(429);
  });
});

describe('what is refused leaves nothing', () => {
  test.each<[string, object, number, string, string]>([
    ['without a payload', { payload: undefined }, 400, 'Invalid input', 'payload'],
    ['without a type', { eventType: undefined }, 400, 'Invalid input', 'eventType'],
    ['an unknown field', { topic: 'x' }, 400, 'Invalid input', 'topic'],
    [
      'more than 64 labels',
      { labels: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`l${i}`, 1])) },
      400,
      'Invalid input',
      'labels',
    ],
    ['metadata of more than 16,384 bytes', { metadata: { a: 'ü'.repeat(8190) } }, 400, 'Invalid input', 'metadata'],
    ['labels that are objects', { labels: { a: {} } }, 400, 'Invalid input', 'labels.a'],
    ['a label of more than 512 characters', { labels: { a: 'x'.repeat(513) } }, 400, 'Invalid input', 'labels.a'],
    ['a key of more than 255 characters', { idempotencyKey: 'x'.repeat(256) }, 400, 'Invalid input', 'idempotencyKey'],
    ['more than 100 endpoints', { endpointIds: Array.from({ length: 101 }, (_, i) => `ep_${i}`) }, 400, 'Invalid input', 'endpointIds'],
  ])('%s', async (_, more, status, error, field) => {
    const type = await eventType();
    const answer = await send({ eventType: type.name, payload: 1, ...more });
    expect([answer.status, answer.body.error]).toEqual([status, error]);
    expect(Object.keys(answer.body.details)).toEqual([field]);
  });

  test('an event type that is unknown or disabled is 404', async () => {
    const type = await eventType({ isEnabled: false });
    for (const name of [type.name, 'no.such_type']) {
      const { status, body } = await send({ eventType: name, payload: 1 });
      expect([status, body]).toEqual([404, { error: 'Not found', message: expect.stringContaining(name), details: {} }]);
    }
  });

  test('a payload that breaks the schema of its type', async () => {
    const type = await eventType({ schema: '{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}' });
    const { status, body } = await send({ eventType: type.name, payload: { id: 1 } });
    expect([status, body.error, body.details]).toEqual([400, 'Invalid input', { payload: ['/id must be string'] }]);
    expect((await send({ eventType: type.name, payload: { id: 'a' } })).status).toBe(201);
  });

  test('a body of another type is 415, one that is too large for the plan 413', async () => {
    const type = await eventType();
    const rawBody = JSON.stringify({ eventType: type.name, payload: 1 });
    for (const type of ['text/plain', 'application/cloudevents+json', 'application/json; charset=utf-16']) {
      const wrong = await send({}, { rawBody, headers: { 'content-type': type } });
      expect([wrong.status, wrong.body.error]).toEqual([415, 'Invalid Content-Type']);
    }
    await world.addOrganization('small', 'free');
    const key = await world.addKey('small');
    await world.request('POST', '/api/event-types', { key, body: { name: 'order.made' } });
    const large = await send({ eventType: 'order.made', payload: 'x'.repeat(64 * 1024) }, { key });
    expect([large.status, large.body.error]).toEqual([413, 'Payload too large']);
    expect((await send({ eventType: 'order.made', payload: 'x'.repeat(60_000) }, { key })).status).toBe(201);
  });

  test('more than an application may get is 429 when it is sent to that application', async () => {
    const type = await eventType();
    const endpoint = await endpointOf({ rateLimits: { perSecond: 100, perMinute: 3, perHour: 100 } });
    await subscribe(endpoint.id, type.id);
    const targeted = { eventType: type.name, payload: 1, applicationId: endpoint.applicationId };
    for (let i = 0; i < 3; i++) expect((await send(targeted)).status).toBe(201);
    const { status, body, headers } = await send(targeted);
    expect([status, body.error]).toEqual([429, 'Rate limited']);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(50);
    const { applicationId: _, ...broadcast } = targeted;
    expect((await send(broadcast)).status).toBe(201);
  });
});

test('what is sent to several applications is counted with all of them or, beyond a limit of one, with none', async () => {
  const type = await eventType();
  const limited = (perMinute: number) => endpointOf({ rateLimits: { perSecond: 100, perMinute, perHour: 100 } });
  const [one, two, three] = [await limited(2), await limited(1), await limited(100)];
  for (const { id } of [one, two, three]) await subscribe(id, type.id);
  const sentTo = (...targets: { id: string }[]) =>
    send({ eventType: type.name, payload: 1, endpointIds: targets.map(({ id }) => id) }).then(({ status, body }) => [status, body.message]);
  expect((await sentTo(one, two, three))[0]).toBe(201);
  for (let i = 0; i < 3; i++) expect(await sentTo(one, two, three)).toEqual([429, expect.stringContaining(two.applicationId)]);
  expect((await sentTo(one))[0]).toBe(201);
  expect(await sentTo(one)).toEqual([429, expect.stringContaining(one.applicationId)]);
});

test('events are counted by themselves, by the plan, each of many at once', async () => {
  await world.addOrganization('counted', 'free');
  const key = await world.addKey('counted');
  const one = await send({ eventType: 'x.y', payload: 1 }, { key });
  expect([one.status, one.headers.get('x-ratelimit-limit'), one.headers.get('x-ratelimit-remaining')]).toEqual([404, '100', '99']);
  const events = (count: number) => Array.from({ length: count }, () => ({ eventType: 'x.y', payload: 1 }));
  const many = (count: number) => world.request('POST', '/api/send-events', { key, body: { events: events(count) } });
  const answered = ({ status, headers }: Answer) => [status, headers.get('x-ratelimit-remaining')];
  expect(answered(await many(48))).toEqual([201, '51']);
  expect(answered(await many(100))).toEqual([429, '50']);
  expect(answered(await many(50))).toEqual([201, '0']);
  const late = await send({ eventType: 'x.y', payload: 1 }, { key });
  expect([late.status, late.body.error]).toEqual([429, 'Rate limit exceeded']);
  expect((await world.request('GET', '/api/event-types', { key })).headers.get('x-ratelimit-limit')).toBe('1000');
});

test('many events at once have an answer each', async () => {
  const type = await eventType();
  await subscribe((await endpointOf()).id, type.id);
  const rawBody = `{"events":[{"eventType":"${type.name}","payload":{"a": 1}},{"eventType":"x.y","payload":1},7,{"payload":1,"eventType":"${type.name}","labels":{"a":"b"}}]}`;
  const { status, body } = await world.request('POST', '/api/send-events', { rawBody });
  expect(status).toBe(201);
  expect(body.data).toEqual([
    { eventId: expect.any(String), messagesQueued: 1, endpoints: [expect.anything()] },
    { error: 'Not found', message: expect.any(String), details: {} },
    { error: 'Invalid input', message: expect.any(String), details: {} },
    { eventId: expect.any(String), messagesQueued: 1, endpoints: [expect.anything()] },
  ]);
  expect((await messages.event(webhookOrganization(org), body.data[0].eventId))?.payload?.toString()).toBe('{"a": 1}');
});

describe('a payload', () => {
  const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
  const payloadOf = async (eventId: string) => (await messages.event(webhookOrganization(org), eventId))?.payload?.toString();

  test('a payload may be nested 512 levels deep, also among many and under a schema', async () => {
    const type = await eventType({ schema: '{"additionalProperties":{"$ref":"#"}}' });
    await subscribe((await endpointOf()).id, type.id, { filterExpression: 'event.data.a.a.a.a != event.data' });
    const payload = nested(512);
    const one = await send({}, { rawBody: `{"eventType":"${type.name}","payload":${payload}}` });
    expect([one.status, one.body.data.messagesQueued]).toEqual([201, 1]);
    expect(await payloadOf(one.body.data.eventId)).toBe(payload);
    const many = await world.request('POST', '/api/send-events', {
      rawBody: `{"events":[{"eventType":"${type.name}","payload":${nested(500)}}]}`,
    });
    expect([many.status, many.body.data[0].messagesQueued]).toEqual([201, 1]);
    const shown = await world.request('GET', `/api/webhook-events/${one.body.data.eventId}`);
    expect([shown.status, JSON.stringify(shown.body.data.payload)]).toEqual([200, payload]);
    const deeper = await send({}, { rawBody: `{"eventType":"${type.name}","payload":${nested(513)}}` });
    expect([deeper.status, deeper.body.message]).toEqual([400, expect.stringContaining('512')]);
  });

  test('a payload may have a key __proto__, which is one like any other', async () => {
    const type = await eventType({ schema: '{"required":["__proto__"],"additionalProperties":{"type":"object","required":["isAdmin"]}}' });
    await subscribe((await endpointOf()).id, type.id, { filterExpression: 'event.data["__proto__"].isAdmin == true' });
    const payload = '{ "__proto__": {"isAdmin": true} }';
    const { status, body } = await send({}, { rawBody: `{"eventType":"${type.name}","payload":${payload}}` });
    expect([status, body.data.messagesQueued]).toEqual([201, 1]);
    expect(await payloadOf(body.data.eventId)).toBe(payload);
    expect((await world.request('GET', `/api/webhook-events/${body.data.eventId}`)).text).toContain(payload);
    expect(Object.hasOwn(Object.prototype, 'isAdmin')).toBe(false);
    const without = await send({}, { rawBody: `{"eventType":"${type.name}","payload":{"constructor":{"isAdmin":true}}}` });
    expect(without.status).toBe(400);
  });

  test.each(['"__proto__":{"payload":1}', '"labels":{"__proto__":"x"}', '"metadata":{"a":{"__proto__":{"b":1}}}'])(
    'may, %s beside it is 400',
    async (beside) => {
      const type = await eventType();
      const event = `{"eventType":"${type.name}","payload":{},${beside}}`;
      const alone = await send({}, { rawBody: event });
      expect([alone.status, alone.body.message]).toEqual([400, expect.stringContaining('__proto__')]);
      const among = await world.request('POST', '/api/send-events', { rawBody: `{"events":[${event}]}` });
      expect([among.status, among.body.data[0].error]).toEqual([201, 'Invalid input']);
    },
  );
});
