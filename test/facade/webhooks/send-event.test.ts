import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { webhookOrganization } from '../../../src/core/webhook.ts';
import { RedisMessageReader } from '../../../src/data/message-reader.ts';
import type { DeliveryView } from '../../../src/data/messages.ts';
import { RedisWebhookStore } from '../../../src/data/webhooks/redis-webhook-store.ts';
import type { NewWebhookSubscription, WebhookRateLimits } from '../../../src/data/webhooks/webhooks.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { silentLogger } from '../../support/logger.ts';
import { passes } from '../../support/passes.ts';
import { newWebhookEndpoint } from '../../support/webhooks.ts';
import { type FacadeWorld, startFacadeWorld } from '../facade-world.ts';

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
}, 60_000);
afterAll(() => world?.stop());

async function eventType(more: object = {}): Promise<{ id: string; name: string }> {
  const { body } = await world.request('POST', '/api/event-types', { body: { name: `order.made${++made}`, ...more } });
  await passes(async () => expect(await world.registry.get('eventType', body.data.id)).not.toBeNull());
  return body.data;
}
async function endpointOf(more: { rateLimits?: WebhookRateLimits; org?: string } = {}): Promise<{ id: string; applicationId: string }> {
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
const messagesOf = (eventId: string): Promise<DeliveryView[]> => messages.deliveriesOfEvent(webhookOrganization(org), eventId);

describe('an event', () => {
  test('is stored, as it was sent, with a message for each endpoint that subscribes to its type', async () => {
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

  test('that nobody wants is stored with no message', async () => {
    const type = await eventType();
    const { status, body } = await send({ eventType: type.name, payload: null });
    expect([status, body.data]).toEqual([201, { eventId: expect.any(String), messagesQueued: 0, endpoints: [] }]);
    expect((await messages.event(webhookOrganization(org), body.data.eventId))?.payload?.toString()).toBe('null');
  });

  test('finds a subscription that was made just before, and misses one that is disabled', async () => {
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

  test('goes only where its labels, and the filter expression, are met', async () => {
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

  test('whose filter expression fails does not match, which the subscription shows until it works again', async () => {
    const type = await eventType();
    const endpoint = await endpointOf();
    const { id } = await subscribe(endpoint.id, type.id, { filterExpression: 'event.data.total > 10.0' });
    expect((await send({ eventType: type.name, payload: {} })).body.data.messagesQueued).toBe(0);
    await passes(async () => expect((await store.subscription(org, id))?.lastFilterError).toMatch(/total/));
    expect((await send({ eventType: type.name, payload: { total: 11 } })).body.data.messagesQueued).toBe(1);
    await passes(async () => expect((await store.subscription(org, id))?.lastFilterError).toBeNull());
  });

  test('can be for an application, or for endpoints, alone', async () => {
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
    for (const more of [{ applicationId: 'app_x' }, { endpointId: 'ep_x' }]) {
      const { status, body } = await send({ eventType: type.name, payload: 1, ...more });
      expect([status, body.error]).toEqual([404, 'Not found']);
    }
  });
});

describe('an idempotency key', () => {
  test('makes one event of many identical requests at once; each gets the same answer', async () => {
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

describe('what is refused leaves nothing', () => {
  test.each<[string, object, number, string, string]>([
    ['without a payload', { payload: undefined }, 400, 'Invalid input', 'payload'],
    ['without a type', { eventType: undefined }, 400, 'Invalid input', 'eventType'],
    ['an unknown field', { topic: 'x' }, 400, 'Invalid input', 'topic'],
    ['labels that are objects', { labels: { a: {} } }, 400, 'Invalid input', 'labels.a'],
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
      expect([status, body]).toEqual([404, { error: 'Not found', message: expect.stringContaining(name) }]);
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
    const wrong = await send({}, { rawBody, headers: { 'content-type': 'text/plain' } });
    expect([wrong.status, wrong.body.error]).toEqual([415, 'Invalid Content-Type']);
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

test('events are counted by themselves, by the plan, each of many at once', async () => {
  await world.addOrganization('counted', 'free');
  const key = await world.addKey('counted');
  const one = await send({ eventType: 'x.y', payload: 1 }, { key });
  expect([one.status, one.headers.get('x-ratelimit-limit'), one.headers.get('x-ratelimit-remaining')]).toEqual([404, '100', '99']);
  const events = (count: number) => Array.from({ length: count }, () => ({ eventType: 'x.y', payload: 1 }));
  expect((await world.request('POST', '/api/send-events', { key, body: { events: events(99) } })).status).toBe(201);
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
    { error: 'Not found', message: expect.any(String) },
    { error: 'Invalid input', message: expect.any(String) },
    { eventId: expect.any(String), messagesQueued: 1, endpoints: [expect.anything()] },
  ]);
  expect((await messages.event(webhookOrganization(org), body.data[0].eventId))?.payload?.toString()).toBe('{"a": 1}');
});
