import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { AbandonedError, LoopTurns } from '../../../src/core/loop-turns.ts';
import { WebhookMessages } from '../../../src/data/webhooks/webhook-messages.ts';
import type { NewWebhookSubscription, WebhookEndpoint } from '../../../src/data/webhooks/webhooks.ts';
import { subscriptionsUnreachedBy } from '../../../src/facade/families/webhooks/messages/unreached-subscriptions.ts';
import type { Call } from '../../../src/facade/http/operation.ts';
import { eventually } from '../../support/eventually.ts';
import { newWebhookEvent } from '../../support/webhook-messages.ts';
import { dropped, type MessagesWorld, startMessagesWorld } from './messages-world.ts';

let world: MessagesWorld;
let made = 0;
beforeAll(async () => {
  world = await startMessagesWorld();
  await world.clear();
});
afterAll(() => world.stop());

async function eventType(): Promise<{ id: string; name: string }> {
  const { body } = await world.facade.request('POST', '/api/event-types', { body: { name: `order.kept${++made}` } });
  await eventually(async () => expect(await world.facade.registry.getOfAny('eventType', body.data.id)).not.toBeNull());
  return body.data;
}

async function subscribed(eventTypeId: string, more: Partial<NewWebhookSubscription> = {}, applicationId?: string) {
  const endpoint = await world.endpoint(applicationId);
  const subscription = await world.store.createSubscription({ org: world.org, endpointId: endpoint.id, eventTypeId, ...more });
  return { endpoint, subscription };
}

async function send(type: { name: string }, more: object = {}): Promise<string> {
  const body = { eventType: type.name, payload: { total: 12 }, ...more };
  const answer = await world.facade.request('POST', '/api/send-event', { body });
  expect(answer.status).toBe(201);
  return answer.body.data.eventId;
}

const unreachedOf = async (eventId: string) => (await world.facade.request('GET', `/api/webhook-events/${eventId}`)).body.data.unreached;

test('each subscription that got nothing has its reason, and one that got the event is left out', async () => {
  const type = await eventType();
  const { org, store } = world;
  await subscribed(type.id);
  const off = await subscribed(type.id, { isEnabled: false });
  const mismatch = await subscribed(type.id, { labelFilters: { tier: ['gold', 'silver'], region: 'eu' } });
  const anyOf = await subscribed(type.id, { labelFilters: { tier: 'gold', shop: '7' }, labelFilterMode: 'any' });
  const untrue = await subscribed(type.id, { filterExpression: 'event.data.total > 100.0' });
  const failing = await subscribed(type.id, { filterExpression: 'event.data.none.such == 1.0' });
  const endpointOff = await subscribed(type.id);
  await store.updateEndpoint(org, endpointOff.endpoint.id, { isDisabled: true, disabledReason: 'it answered 410' });
  const applicationOff = await subscribed(type.id);
  await store.updateApplication(org, applicationOff.endpoint.applicationId, { isDisabled: true });
  const eventId = await send(type, { labels: { tier: 'bronze' } });
  const unreached = await unreachedOf(eventId);
  const row = ({ subscription, endpoint }: typeof off, more: object) => ({
    subscriptionId: subscription.id,
    endpointId: endpoint.id,
    applicationId: endpoint.applicationId,
    messageId: null,
    labels: [],
    expression: null,
    error: null,
    changedSince: false,
    ...more,
  });
  const tier = (expected: unknown) => ({ label: 'tier', expected, actual: 'bronze' });
  expect(unreached).toEqual({
    total: 7,
    byReason: {
      application_disabled: 1,
      endpoint_disabled: 1,
      expression_failed: 1,
      expression_false: 1,
      label_mismatch: 2,
      subscription_disabled: 1,
    },
    subscriptions: [
      row(applicationOff, { reason: 'application_disabled' }),
      row(endpointOff, { reason: 'endpoint_disabled', error: 'it answered 410' }),
      row(failing, {
        reason: 'expression_failed',
        expression: 'event.data.none.such == 1.0',
        error: expect.stringMatching(/none|such|field|key/i),
      }),
      row(untrue, { reason: 'expression_false', expression: 'event.data.total > 100.0' }),
      row(anyOf, { reason: 'label_mismatch', labels: [tier('gold'), { label: 'shop', expected: '7', actual: null }] }),
      row(mismatch, { reason: 'label_mismatch', labels: [tier(['gold', 'silver'])] }),
      row(off, { reason: 'subscription_disabled' }),
    ],
    scanned: 8,
    isComplete: true,
  });
});

test.each([
  [
    'subscription',
    ({ org, store }: MessagesWorld, { subscription }) => store.updateSubscription(org, subscription.id, { labelFilters: {} }),
  ],
  ['endpoint', ({ org, store }, { endpoint }) => store.updateEndpoint(org, endpoint.id, { description: 'new' })],
  ['application', ({ org, store }, { endpoint }) => store.updateApplication(org, endpoint.applicationId, { name: 'New' })],
] as [string, (world: MessagesWorld, made: Awaited<ReturnType<typeof subscribed>>) => Promise<unknown>][])(
  'a change of the %s after the event is said, and no reason of then is guessed',
  async (what, change) => {
    const type = await eventType();
    const made = await subscribed(type.id, { labelFilters: { tier: 'gold' } });
    const eventId = await send(type);
    expect((await unreachedOf(eventId)).subscriptions).toMatchObject([{ reason: 'label_mismatch', changedSince: false }]);
    await change(world, made);
    const reason = what === 'subscription' ? 'matches_now' : 'label_mismatch';
    expect((await unreachedOf(eventId)).subscriptions).toMatchObject([{ reason, changedSince: true }]);
  },
);

test('a subscription that was made after the event reports it', async () => {
  const type = await eventType();
  const eventId = await send(type);
  const { subscription } = await subscribed(type.id);
  expect(await unreachedOf(eventId)).toMatchObject({
    total: 1,
    subscriptions: [{ subscriptionId: subscription.id, reason: 'created_after', changedSince: false }],
  });
});

test('three unmet labels are shown with five values each, and 200 characters of a value', async () => {
  const type = await eventType();
  const values = Array.from({ length: 8 }, (_, i) => `${i}${'x'.repeat(250)}`);
  const labelFilters = Object.fromEntries(['a', 'b', 'c', 'd'].map((key) => [key, values]));
  await subscribed(type.id, { labelFilters, labelFilterMode: 'any' });
  const [{ labels }] = (await unreachedOf(await send(type, { labels: { a: 'y'.repeat(250) } }))).subscriptions;
  const expected = values.slice(0, 5).map((value) => `${value.slice(0, 199)}…`);
  expect(labels).toEqual([
    { label: 'a', expected, actual: `${'y'.repeat(199)}…` },
    { label: 'b', expected, actual: null },
    { label: 'c', expected, actual: null },
  ]);
});

test('labels are evaluated in turns, and no further once the client has hung up', async () => {
  const type = await eventType();
  for (let i = 0; i < 3; i++) await subscribed(type.id, { labelFilters: { tier: 'gold' } });
  const found = await new WebhookMessages({ redis: world.facade.redis.client, prefix: 'test:' }).event(world.org, await send(type));
  if (found === null) throw new Error('there is no event');
  let nowMs = 0;
  const turn = new LoopTurns(() => (nowMs += 10)).of(world.org);
  const callWith = (signal: AbortSignal) =>
    ({ services: { webhooks: world.store }, caller: { organization: { id: world.org } }, turn, signal }) as unknown as Call;
  expect(await subscriptionsUnreachedBy(callWith(new AbortController().signal), found)).toMatchObject({ total: 3 });
  expect(turn.waits).toBeGreaterThan(1);
  await expect(subscriptionsUnreachedBy(callWith(AbortSignal.abort()), found)).rejects.toThrow(AbandonedError);
});

test('only the endpoints to which an event was sent are shown', async () => {
  const type = await eventType();
  await subscribed(type.id, { isEnabled: false });
  const own = await subscribed(type.id, { isEnabled: false });
  const without = await world.endpoint(own.endpoint.applicationId);
  const event = newWebhookEvent(world.org, [], {
    sourceId: type.id,
    webhook: { applicationId: own.endpoint.applicationId, endpointIds: [own.endpoint.id, without.id, (await world.endpoint()).id] },
  });
  await world.facade.acceptor.accept(event);
  const { subscriptions, total } = await unreachedOf(event.id);
  expect(total).toBe(3);
  expect(new Map(subscriptions.map((each: { endpointId: string; reason: string }) => [each.endpointId, each.reason]))).toEqual(
    new Map([
      [own.endpoint.id, 'subscription_disabled'],
      [without.id, 'no_subscription'],
      [event.webhook?.endpointIds[2], 'other_application'],
    ]),
  );
});

test('an event that was sent to one application shows no other application', async () => {
  const type = await eventType();
  await subscribed(type.id, { isEnabled: false });
  const own = await subscribed(type.id, { isEnabled: false });
  const eventId = await send(type, { applicationId: own.endpoint.applicationId });
  expect(await unreachedOf(eventId)).toMatchObject({ total: 1, scanned: 1, subscriptions: [{ subscriptionId: own.subscription.id }] });
});

test.each([
  ['filtered', 'transform_filtered'],
  ['transform_failed', 'transform_failed'],
] as const)('a message that its transform ended as %s is told with its reason', async (status, reason) => {
  const type = await eventType();
  const { subscription } = await subscribed(type.id);
  const eventId = await send(type);
  const ended = await world.end(dropped(status));
  expect((await unreachedOf(eventId)).subscriptions).toMatchObject([
    { subscriptionId: subscription.id, messageId: ended.at(-1), reason, error: 'why', changedSince: false },
  ]);
});

test('the answer reads 1,000 of more subscriptions, shows 100, and states so', async () => {
  const type = await eventType();
  const application = await world.store.createApplication({ org: world.org, name: 'Large', shard: 0 });
  const endpoints: WebhookEndpoint[] = [];
  for (let i = 0; i < 1010; i++) endpoints.push(await world.endpoint(application.id));
  for (const { id: endpointId } of endpoints)
    await world.store.createSubscription({ org: world.org, endpointId, eventTypeId: type.id, labelFilters: { tier: 'gold' } });
  const unreached = await unreachedOf(await send(type));
  expect([unreached.total, unreached.scanned, unreached.isComplete, unreached.subscriptions.length]).toEqual([1000, 1000, false, 100]);
  expect(unreached.byReason).toEqual({ label_mismatch: 1000 });
});

test('subscriptions of another organization are never told', async () => {
  const type = await eventType();
  await world.facade.addOrganization(`other${++made}`);
  const other = await world.facade.organizationId(`other${made}`);
  const application = await world.store.createApplication({ org: other, name: 'Foreign', shard: 0 });
  const endpoint = await world.store.createEndpoint({
    org: other,
    applicationId: application.id,
    url: 'https://foreign.example/',
    sealSecret: () => ({ sealed: 'x', prefix: 'whsec_', version: 1, previous: [] }),
  });
  await world.store.createSubscription({ org: other, endpointId: endpoint.id, eventTypeId: type.id, isEnabled: false });
  expect(await unreachedOf(await send(type))).toEqual({ total: 0, byReason: {}, subscriptions: [], scanned: 0, isComplete: true });
});
