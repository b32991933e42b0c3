import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { webhookOrganization } from '../../../src/core/webhook.ts';
import { eventually } from '../../support/eventually.ts';
import { expireMessages } from '../../support/expire-messages.ts';
import { newEvent } from '../../support/new-event.ts';
import { later, type MessagesWorld, startMessagesWorld } from './messages-world.ts';

let world: MessagesWorld;
let made = 0;
beforeAll(async () => {
  world = await startMessagesWorld();
});
afterAll(() => world.stop());
beforeEach(() => world.clear());

const request: MessagesWorld['facade']['request'] = (...args) => world.facade.request(...args);
async function eventType(more: object = {}): Promise<{ id: string; name: string }> {
  const { status, body } = await request('POST', '/api/event-types', { body: { name: `expiry.of${++made}`, ...more } });
  expect([status, body]).toEqual([201, body]);
  await eventually(async () => expect(await world.facade.registry.getOfAny('eventType', body.data.id)).not.toBeNull());
  return body.data;
}
/** An endpoint that subscribes to the type. */
async function subscriber(eventTypeId: string, more: object = {}): Promise<string> {
  const application = (await request('POST', '/api/webhook-applications', { body: { name: 'Customer' } })).body.data.id;
  const body = { applicationId: application, url: `https://e${++made}.example/hooks`, ...more };
  const created = await request('POST', '/api/webhook-endpoints', { body });
  expect([created.status, created.body]).toEqual([201, created.body]);
  await world.store.createSubscription({ org: world.org, endpointId: created.body.data.id, eventTypeId });
  return created.body.data.id;
}
const send = (body: object) => request('POST', '/api/send-event', { body: { payload: {}, ...body } });
const messages = async (eventId: string) =>
  (await request('GET', `/api/webhook-events/${eventId}`)).body.data.messages.map(({ id }: { id: string }) => id) as string[];
const read = async (id: string) => (await request('GET', `/api/outbound-messages/${id}`)).body.data;
/** By endpoint: seconds from the creation of its message, or from its time, until it expires. */
async function secondsOf(eventId: string, fromMs?: number): Promise<Record<string, number | null>> {
  const shown: Record<string, number | null> = {};
  for (const id of await messages(eventId)) {
    const { endpointId, expiresAt, createdAt } = await read(id);
    shown[endpointId] = expiresAt === null ? null : Math.round((Date.parse(expiresAt) - (fromMs ?? Date.parse(createdAt))) / 1000);
  }
  return shown;
}
async function expire(): Promise<void> {
  await expireMessages(world.facade.redis.client, 'test:{s0}:');
  await world.queue.promote();
}

test('a message expires by its endpoint, its event type or what was sent, whichever is earliest', async () => {
  const type = await eventType({ expiresAfterSeconds: 600 });
  const [short, long, none] = [
    await subscriber(type.id, { expiresAfterSeconds: 60 }),
    await subscriber(type.id, { expiresAfterSeconds: 3600 }),
    await subscriber(type.id),
  ];
  const first = await send({ eventType: type.name });
  expect(await secondsOf(first.body.data.eventId)).toEqual({ [short]: 60, [long]: 600, [none]: 600 });
  const second = await send({ eventType: type.name, expiresAfterSeconds: 300 });
  expect(await secondsOf(second.body.data.eventId)).toEqual({ [short]: 60, [long]: 300, [none]: 300 });
  const plain = await eventType();
  const endpoint = await subscriber(plain.id);
  const third = await send({ eventType: plain.name });
  expect(await secondsOf(third.body.data.eventId)).toEqual({ [endpoint]: null });
  const deliverAt = new Date(Date.now() + 3_600_000).toISOString();
  const fourth = await send({ eventType: plain.name, expiresAfterSeconds: 30, deliverAt });
  expect(await secondsOf(fourth.body.data.eventId, Date.parse(deliverAt))).toEqual({ [endpoint]: 30 });
});

test('events of a list have deadlines of their own', async () => {
  const type = await eventType();
  const endpoint = await subscriber(type.id);
  const events = [
    { eventType: type.name, payload: {}, expiresAfterSeconds: 30 },
    { eventType: type.name, payload: {} },
  ];
  const { body } = await request('POST', '/api/send-events', { body: { events } });
  expect(await secondsOf(body.data[0].eventId)).toEqual({ [endpoint]: 30 });
  expect(await secondsOf(body.data[1].eventId)).toEqual({ [endpoint]: null });
});

test.each([0, -1, 1.5, 2_592_001, '60', true])(
  'expiresAfterSeconds of %j is 400 with the field in the details, wherever it is sent',
  async (wrong) => {
    const type = await eventType();
    const endpoint = await subscriber(type.id);
    for (const { status, body } of [
      await send({ eventType: type.name, expiresAfterSeconds: wrong }),
      await request('POST', '/api/event-types', { body: { name: 'expiry.wrong', expiresAfterSeconds: wrong } }),
      await request('PATCH', `/api/event-types/${type.id}`, { body: { expiresAfterSeconds: wrong } }),
      await request('PATCH', `/api/webhook-endpoints/${endpoint}`, { body: { expiresAfterSeconds: wrong } }),
    ])
      expect([status, body.details]).toEqual([400, { expiresAfterSeconds: [expect.any(String)] }]);
    const { status, body } = await request('POST', '/api/destinations', {
      body: { name: 'Wrong', url: 'https://d.example/', expiresAfterSeconds: wrong },
    });
    expect([status, body.message]).toEqual([400, expect.stringContaining('expiresAfterSeconds')]);
  },
);

test('expiresAfterSeconds is taken at its bounds, stays when it is not sent, and null takes it away', async () => {
  const type = await eventType({ expiresAfterSeconds: 1 });
  const endpoint = await subscriber(type.id, { expiresAfterSeconds: 2_592_000 });
  const destination = (
    await request('POST', '/api/destinations', { body: { name: 'D', url: 'https://d.example/', expiresAfterSeconds: 60 } })
  ).body;
  const paths = {
    [`/api/event-types/${type.id}`]: 1,
    [`/api/webhook-endpoints/${endpoint}`]: 2_592_000,
    [`/api/destinations/${destination.id}`]: 60,
  };
  const shown = async (path: string) => {
    const { body } = await request('GET', path);
    return (body.data ?? body).expiresAfterSeconds;
  };
  for (const [path, value] of Object.entries(paths)) {
    expect([path, await shown(path)]).toEqual([path, value]);
    await request('PATCH', path, { body: { description: 'Changed' } });
    expect([path, await shown(path)]).toEqual([path, value]);
    await request('PATCH', path, { body: { expiresAfterSeconds: null } });
    expect([path, await shown(path)]).toEqual([path, null]);
  }
});

test('a message that has expired reports it, is found by its error type, and is explained', async () => {
  const type = await eventType();
  const endpoint = await subscriber(type.id, { expiresAfterSeconds: 3_600 });
  const { eventId } = (await send({ eventType: type.name })).body.data;
  const [id = ''] = await messages(eventId);
  const waiting = (await request('GET', `/api/explain/${id}`)).body;
  expect(waiting.story.at(-1)).toMatchObject({ what: 'expires', data: { expiresAt: (await read(id)).expiresAt } });
  await expire();
  expect(await read(id)).toMatchObject({
    status: 'dlq',
    dlqReason: 'max_retries_exceeded',
    lastErrorType: 'expired',
    attempts: 0,
    expiresAt: null,
    waitingFor: null,
  });
  const { body } = await request('GET', '/api/outbound-messages?errorType=expired');
  expect(body.data.map((each: { id: string }) => each.id)).toEqual([id]);
  expect((await request('GET', '/api/outbound-messages/stats/summary')).body.data).toMatchObject({ dlq: 1, pending: 0 });
  const explained = (await request('GET', `/api/explain/${id}`)).body;
  expect(explained.summary).toBe(
    'The message is given up. It is a dead letter, because it expired: it was not delivered before its deadline.',
  );
  expect(explained.advice.map(({ text }: { text: string }) => text)).toEqual([
    'Send a test to the endpoint now, and read what it returns.',
    'If messages have to wait longer, raise expiresAfterSeconds of the endpoint, the event type or what is sent. A message that is sent again does not expire.',
    'Send it again once the cause is repaired.',
  ]);
  const retried = await request('POST', `/api/outbound-messages/dlq/${id}/retry`);
  expect([retried.status, retried.body]).toEqual([201, retried.body]);
  const [again] = await world.end(later);
  expect(await read(again ?? '')).toMatchObject({ status: 'failed', endpointId: endpoint, replayedFrom: id, expiresAt: null });
});

test('a delivery that has expired reports it, and is explained', async () => {
  const event = newEvent({ org: world.org });
  const targets = event.targets.map((target) => ({ ...target, expiresAtMs: Date.now() + 3_600_000 }));
  await world.facade.acceptor.accept({ ...event, targets });
  const id = targets[0]?.messageId ?? '';
  const delivery = async () => (await request('GET', `/api/deliveries/${id}`)).body;
  expect(await delivery()).toMatchObject({ status: 'pending', expiresAt: new Date(targets[0]?.expiresAtMs ?? 0).toISOString() });
  await expire();
  expect(await delivery()).toMatchObject({ status: 'dlq', deadLetterReason: 'expired', lastErrorType: null, expiresAt: null });
  expect((await request('GET', '/api/deliveries/dead-letter-stats')).body).toMatchObject({ total: 1, byReason: { expired: 1 } });
  expect((await request('GET', `/api/explain/${id}`)).body.summary).toBe(
    'The delivery is given up. It is a dead letter, because it expired: it was not delivered before its deadline.',
  );
});

test('messages of webhook organizations are counted by status, whatever they expire of', async () => {
  const key = `test:{s0}:ms:${webhookOrganization(world.org)}`;
  const type = await eventType();
  await subscriber(type.id, { expiresAfterSeconds: 3600 });
  await send({ eventType: type.name });
  await world.end(later);
  await send({ eventType: type.name });
  expect(await world.facade.redis.client.hgetall(key)).toEqual({ p: '1', q: '1' });
  await expire();
  expect(await world.facade.redis.client.hgetall(key)).toEqual({ q: '2' });
});
