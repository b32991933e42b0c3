import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { RedisDeliveryQueue } from '../../../src/data/queue/redis-delivery-queue.ts';
import { emptiedQueue } from '../../support/emptied-queue.ts';
import { eventually } from '../../support/eventually.ts';
import { delivered, settleAll, takeFrom } from '../../support/queue-worker.ts';
import { type FacadeWorld, startFacadeWorld } from '../facade-world.ts';

let world: FacadeWorld;
let queue: RedisDeliveryQueue;
const eventType = 'order.paid';
beforeAll(async () => {
  world = await startFacadeWorld();
  const application = (await world.request('POST', '/api/webhook-applications', { body: { name: 'Customer' } })).body.data.id;
  const type = (await world.request('POST', '/api/event-types', { body: { name: eventType } })).body.data;
  await eventually(async () => expect(await world.registry.getOfAny('eventType', type.id)).not.toBeNull());
  const endpoint = await world.request('POST', '/api/webhook-endpoints', {
    body: { applicationId: application, url: 'https://customer.example/hooks' },
  });
  await world.request('POST', '/api/webhook-subscriptions', { body: { endpointId: endpoint.body.data.id, eventTypeId: type.id } });
});
afterAll(() => world?.stop());
beforeEach(async () => {
  queue = await emptiedQueue(world);
});

const send = (body: object) => world.request('POST', '/api/send-event', { body: { eventType, payload: { a: 1 }, ...body } });
async function messageOf(eventId: string) {
  const { body } = await world.request('GET', `/api/webhook-events/${eventId}`);
  return { event: body.data, message: body.data.messages[0] };
}

test('an event with deliverAt waits until then: its record, its message and its story report it', async () => {
  const deliverAt = new Date(Date.now() + 3_600_000).toISOString();
  const sent = await send({ deliverAt });
  expect([sent.status, sent.body.data.messagesQueued]).toEqual([201, 1]);
  expect(await takeFrom(queue, 'w1', 10)).toEqual([]);
  const { event, message } = await messageOf(sent.body.data.eventId);
  expect(event.deliverAt).toBe(deliverAt);
  expect(message).toMatchObject({
    status: 'pending',
    attempts: 0,
    waitingFor: 'scheduled',
    waitingUntil: deliverAt,
    nextAttemptAt: deliverAt,
  });
  const { body } = await world.request('GET', `/api/explain/${message.id}`);
  expect(body).toMatchObject({
    waitsFor: { reason: 'scheduled', until: deliverAt },
    next: { what: 'attempt', at: deliverAt },
    advice: [{ command: expect.stringContaining(`/api/outbound-messages/${message.id}/cancel`) }],
  });
  const { advice } = (await world.request('GET', `/api/explain/${event.id}`)).body;
  expect(advice).toEqual([
    {
      text: 'Cancel what waits of the event if it is not to be sent.',
      command: expect.stringContaining(
        `/api/outbound-messages/cancel" -H "x-api-key: $KEY" -H 'content-type: application/json' -d '{"filter":{"eventId":"${event.id}"}}'`,
      ),
    },
  ]);
  expect(body.story.map(({ what }: { what: string }) => what)).toContain('scheduled');
});

test('delaySeconds counts from the request; with 0 the event is sent at once', async () => {
  const before = Date.now();
  const { event } = await messageOf((await send({ delaySeconds: 600 })).body.data.eventId);
  expect(Date.parse(event.deliverAt)).toBeGreaterThanOrEqual(before + 600_000);
  expect(Date.parse(event.deliverAt)).toBeLessThanOrEqual(Date.now() + 600_000);
  const now = await messageOf((await send({ delaySeconds: 0 })).body.data.eventId);
  expect(now.event.deliverAt).toBeNull();
  const jobs = await takeFrom(queue, 'w1', 10);
  expect(jobs.map(({ messageId }) => messageId)).toEqual([now.message.id]);
  await settleAll(queue, 'w1', jobs, delivered);
});

test('a deliverAt that has passed sends the event at once', async () => {
  const { event } = await messageOf((await send({ deliverAt: '2020-01-01T00:00:00+02:00' })).body.data.eventId);
  expect(event.deliverAt).toBeNull();
  expect(await takeFrom(queue, 'w1', 10)).toHaveLength(1);
});

test.each([
  [{ deliverAt: '2126-01-01T00:00:00Z' }, 'deliverAt', 'must be at most 7 days ahead'],
  [{ deliverAt: '2020-01-01T00:00:00Z', delaySeconds: 1 }, 'delaySeconds', 'cannot be given together with deliverAt'],
  [{ deliverAt: 'tomorrow' }, 'deliverAt', expect.any(String)],
  [{ deliverAt: null }, 'deliverAt', expect.any(String)],
  [{ delaySeconds: 604_801 }, 'delaySeconds', expect.any(String)],
  [{ delaySeconds: -1 }, 'delaySeconds', expect.any(String)],
  [{ delaySeconds: 1.5 }, 'delaySeconds', expect.any(String)],
  [{ delaySeconds: '5' }, 'delaySeconds', expect.any(String)],
])('%j is 400 with the field in the details, and in a batch an error of its own', async (wrong, field, problem) => {
  const { status, body } = await send(wrong);
  expect([status, body.details]).toEqual([400, { [field]: [problem] }]);
  const batch = await world.request('POST', '/api/send-events', {
    body: {
      events: [
        { eventType, payload: 1, ...wrong },
        { eventType, payload: 2, delaySeconds: 60 },
      ],
    },
  });
  expect(batch.status).toBe(201);
  expect(batch.body.data[0].details).toEqual({ [field]: [problem] });
  expect(batch.body.data[1].messagesQueued).toBe(1);
  expect(await takeFrom(queue, 'w1', 10)).toEqual([]);
});

test('the same idempotencyKey gets the first answer, with the first time', async () => {
  const first = await send({ delaySeconds: 600, idempotencyKey: 'o-1' });
  const second = await send({ delaySeconds: 5, idempotencyKey: 'o-1' });
  expect([second.status, second.body]).toEqual([200, first.body]);
  const { event, message } = await messageOf(first.body.data.eventId);
  expect(Date.parse(event.deliverAt)).toBeGreaterThan(Date.now() + 500_000);
  expect(event.messages ?? [message]).toHaveLength(1);
});

test('a scheduled event counts to the month when it is sent, and a cancel gives nothing back', async () => {
  const spec = { namespace: 'planned', plan: 'free' as const, limits: { monthlyMessages: 1 } };
  await world.store.apply({ kind: 'Organization', metadata: { name: 'planned' }, spec }, { manager: 'kubectl' });
  await eventually(() => world.store.get('Namespace', { name: 'planned' }));
  const key = await world.addKey('planned');
  const make = async (path: string, body: object) => (await world.request('POST', `/api${path}`, { key, body })).body.data;
  await make('/event-types', { name: eventType });
  const application = await make('/webhook-applications', { name: 'Customer' });
  const endpoint = await make('/webhook-endpoints', { applicationId: application.id, url: 'https://planned.example/' });
  await make('/webhook-subscriptions', { endpointId: endpoint.id, eventTypeId: eventType });
  const sendOne = (body: object) => world.request('POST', '/api/send-event', { key, body: { eventType, payload: {}, ...body } });
  const scheduled = await eventually('the organization to send', 20_000, async () => {
    const answer = await sendOne({ delaySeconds: 604_800 });
    return answer.body.data?.messagesQueued === 1 && answer.body.data;
  });
  expect(await sendOne({})).toMatchObject({ status: 429, body: { error: 'Monthly limit exceeded' } });
  const cancel = { filter: { eventId: scheduled.eventId } };
  const { body } = await world.request('POST', '/api/outbound-messages/cancel', { key, body: cancel });
  expect(body.data).toMatchObject({ cancelled: 1 });
  expect(await sendOne({ delaySeconds: 60 })).toMatchObject({ status: 429 });
});
