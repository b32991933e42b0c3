import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { RedisWebhookStore } from '../../../src/data/webhooks/redis-webhook-store.ts';
import { WebhookMessages } from '../../../src/data/webhooks/webhook-messages.ts';
import { systemClock } from '../../../src/runtime/system-clock.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/logger.ts';
import { newWebhookEndpoint } from '../../support/webhooks.ts';
import { type FacadeWorld, startFacadeWorld } from '../facade-world.ts';

const schema = '{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}';
let world: FacadeWorld;
let store: RedisWebhookStore;
let org: string;
let ofAllShards: FacadeWorld['request'];
let made = 0;

beforeAll(async () => {
  world = await startFacadeWorld();
  store = new RedisWebhookStore({ redis: world.redis.client, prefix: 'test:', clock: systemClock, logger: silentLogger });
  const webhookMessages = new WebhookMessages({ redis: world.redis.client, prefix: 'test:', shards: () => 3 });
  ofAllShards = await world.startReplica({ webhookMessages });
  org = await world.organizationId('acme');
});
afterAll(() => world?.stop());

async function eventType(more: object = {}): Promise<{ id: string; name: string }> {
  const { body } = await world.request('POST', '/api/event-types', { body: { name: `list.of${++made}`, ...more } });
  await eventually(async () => expect(await world.registry.getOfAny('eventType', body.data.id)).not.toBeNull());
  return body.data;
}

/** The application of a new endpoint that subscribes to the type. */
async function subscriber(eventTypeId: string, shard = 0): Promise<string> {
  const { id } = await store.createApplication({ org, name: 'Customer', shard });
  const endpoint = await store.createEndpoint(newWebhookEndpoint(id, { org, url: `https://l${++made}.example/` }));
  await store.createSubscription({ org, endpointId: endpoint.id, eventTypeId });
  return id;
}

interface Answered {
  eventId?: string;
  error?: string;
}

async function sendAll(events: readonly object[]): Promise<Answered[]> {
  const { status, body } = await world.request('POST', '/api/send-events', { body: { events } });
  expect(status).toBe(201);
  return body.data;
}

async function numberOf(eventId: string | undefined): Promise<number> {
  const { status, body } = await world.request('GET', `/api/webhook-events/${eventId}`);
  expect([status, body]).toEqual([200, body]);
  return body.data.payload.n;
}

const large = 'x'.repeat(200_000);

describe('of several events of a list with one idempotency key', () => {
  test.each<[string, object[], (number | 'refused')[]]>([
    ['the first is stored, although it is larger', [{ n: 0, large }, { n: 1 }], [0, 0]],
    [
      'the first is stored, however many there are',
      Array.from({ length: 20 }, (_, n) => ({ n, ...(n < 10 && { large }) })),
      Array(20).fill(0),
    ],
    ['the first that is not refused is stored', [{ n: 'none', large }, { large }, { n: 2, large }, { n: 3 }], ['refused', 'refused', 2, 2]],
    ['one that is refused later has the answer to the first', [{ n: 0 }, { n: 'none' }], [0, 0]],
  ])('%s', async (title, payloads, stored) => {
    const type = await eventType({ schema });
    await subscriber(type.id);
    for (let round = 0; round < 5; round++) {
      const idempotencyKey = `${title} ${round}`;
      const answers = await sendAll(payloads.map((payload) => ({ eventType: type.name, payload, idempotencyKey })));
      const seen = await Promise.all(answers.map(({ eventId }) => (eventId === undefined ? 'refused' : numberOf(eventId))));
      expect(seen).toEqual(stored);
    }
  });

  test('each key has its own first', async () => {
    const type = await eventType({ schema });
    await subscriber(type.id);
    const events = Array.from({ length: 40 }, (_, n) => ({
      eventType: type.name,
      payload: { n, ...(n < 10 && { large }) },
      idempotencyKey: `key ${n % 10}`,
    }));
    const answers = await sendAll(events);
    expect(await Promise.all(answers.map(({ eventId }) => numberOf(eventId)))).toEqual(events.map((_, n) => n % 10));
  });
});

describe('lists show the events of a list in its order', () => {
  test.each<[string, { shards: number[]; key: boolean; refusedEvery: number }]>([
    ['that are of many sizes', { shards: [0], key: false, refusedEvery: 0 }],
    ['that have keys', { shards: [0], key: true, refusedEvery: 0 }],
    ['some of which are refused', { shards: [0], key: true, refusedEvery: 4 }],
    ['that go to applications in several shards', { shards: [2, 0, 1], key: false, refusedEvery: 0 }],
  ])('%s', async (title, { shards, key, refusedEvery }) => {
    const type = await eventType({ schema });
    const applications = await Promise.all(shards.map((shard) => subscriber(type.id, shard)));
    const events = Array.from({ length: 60 }, (_, n) => ({
      eventType: type.name,
      payload: { n: refusedEvery > 0 && n % refusedEvery === 1 ? 'refused' : n, ...(n % 7 === 0 && { large: 'x'.repeat(90_000) }) },
      ...(shards.length > 1 && { applicationId: applications[n % shards.length] }),
      ...(key && { idempotencyKey: `${title} ${n}` }),
    }));
    const answers = await sendAll(events);
    expect(answers.filter(({ eventId }, n) => eventId === undefined && !(refusedEvery > 0 && n % refusedEvery === 1))).toEqual([]);
    const stored = answers.flatMap(({ eventId }) => eventId ?? []);
    await eventually(async () => {
      const { body } = await ofAllShards('GET', `/api/outbound-messages?eventType=${type.name}&limit=100`);
      expect(body.data.map((each: { eventId: string }) => each.eventId).reverse()).toEqual(stored);
    });
  });
});
