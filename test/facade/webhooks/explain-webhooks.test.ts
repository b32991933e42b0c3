import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { webhookOrganization } from '../../../src/core/webhook.ts';
import { hashFields } from '../../../src/data/shard/hash-fields.ts';
import { eventually } from '../../support/eventually.ts';
import { dead, delivered, failure, settleAll, takeFrom } from '../../support/queue-worker.ts';
import { targetSetting } from '../../support/target-setting.ts';
import { newWebhookEvent } from '../../support/webhook-messages.ts';
import { newWebhookEndpoint } from '../../support/webhooks.ts';
import { later, type MessagesWorld, soon, startMessagesWorld } from './messages-world.ts';

let world: MessagesWorld;
let stranger: string;
let type: { id: string; name: string };
beforeAll(async () => {
  world = await startMessagesWorld();
  await world.facade.addOrganization('stranger');
  stranger = await world.facade.addKey('stranger');
  const { body } = await world.facade.request('POST', '/api/event-types', { body: { name: 'order.paid' } });
  type = body.data;
  await eventually(async () => expect(await world.facade.registry.getOfAny('eventType', type.id)).not.toBeNull());
});
afterAll(() => world.stop());
beforeEach(() => world.clear());

const explain = async (id: string) => {
  const { status, body } = await world.facade.request('GET', `/api/explain/${id}`);
  expect(status).toBe(200);
  const foreign = await world.facade.request('GET', `/api/explain/${id}`, { key: stranger });
  expect([foreign.status, foreign.body.code]).toEqual([404, 'RESOURCE_NOT_FOUND']);
  return body;
};
const send = async (labels: object = {}) => {
  const body = { eventType: type.name, payload: { total: 1 }, labels };
  return (await world.facade.request('POST', '/api/send-event', { body })).body.data.eventId as string;
};
async function subscribed(more: object = {}) {
  const endpoint = await world.endpoint();
  const subscription = await world.store.createSubscription({ org: world.org, endpointId: endpoint.id, eventTypeId: type.id, ...more });
  return { endpoint, subscription };
}

test('a webhook event shows its messages and why subscriptions got nothing', async () => {
  const one = await subscribed();
  const other = await subscribed({ labelFilters: { tier: 'gold' } });
  const eventId = await send({ tier: 'bronze' });
  await world.end(delivered);
  const body = await explain(eventId);
  expect(body).toMatchObject({ kind: 'webhook event', state: 'delivered', waitsFor: null });
  expect(body.story.find(({ what }: { what: string }) => what === 'message')).toMatchObject({
    text: expect.stringContaining('It is delivered after 1 attempt. Its body is the payload, signed with hmac-sha256.'),
    data: { endpointId: one.endpoint.id, payloadForm: 'full', signatureScheme: 'hmac-sha256' },
  });
  expect(body.story.at(-1).text).toBe(
    `The endpoint ${other.endpoint.id} got nothing: label mismatch (the label tier must be "gold", and the event has "bronze").`,
  );
  for (const { endpoint } of [one, other]) await world.store.deleteEndpoint(world.org, endpoint.id);
});

test('a message to an endpoint waits for its next attempt, and is a dead letter in the end', async () => {
  const { endpoint } = await subscribed();
  const eventId = await send();
  const [id = ''] = await world.end(later);
  expect(await explain(id)).toMatchObject({
    kind: 'outbound message',
    state: 'failed',
    waitsFor: { reason: 'retry' },
    next: { what: 'attempt' },
  });
  expect(await explain(eventId)).toMatchObject({ state: 'pending', waitsFor: { reason: 'retry' } });
  await world.clear();
  await send();
  const [deadId = ''] = await world.end(dead);
  const body = await explain(deadId);
  expect(body).toMatchObject({ state: 'dlq', summary: expect.stringContaining('its receiver rejected it and allows no further attempt') });
  expect(body.advice.at(-1).command).toContain(`/api/outbound-messages/dlq/${deadId}/retry`);
  await world.store.deleteEndpoint(world.org, endpoint.id);
});

test('an endpoint shows its backlog: what waits, since when, and what is scheduled', async () => {
  const { endpoint } = await subscribed();
  const backlog = async () => (await explain(endpoint.id)).story.find(({ what }: { what: string }) => what === 'backlog');
  expect(await backlog()).toMatchObject({ data: { messages: 0, scheduled: 0, oldestAt: null } });
  const beganMs = Date.now();
  for (let i = 0; i < 2; i++) await send();
  await world.end(later);
  await send();
  const body = { eventType: type.name, payload: { total: 1 }, delaySeconds: 3600 };
  await world.facade.request('POST', '/api/send-event', { body });
  const { text, data } = await backlog();
  expect(data).toEqual({ messages: 3, scheduled: 1, oldestAt: expect.any(String) });
  expect(Date.parse(data.oldestAt)).toBeGreaterThanOrEqual(beganMs);
  expect(text).toBe(`Messages not ended: 3, the oldest of those that are due since ${data.oldestAt}; scheduled for later: 1.`);
  await world.clear();
  await world.store.deleteEndpoint(world.org, endpoint.id);
});

test('a message that waits for an open circuit, and its endpoint, show how the circuit is closed', async () => {
  const { endpoint } = await subscribed();
  await send();
  const circuit = { failureThreshold: 1, cooldownSeconds: 60, probeSuccessThreshold: 1 };
  const jobs = await takeFrom(world.queue, 'w1', 1, { circuit });
  await settleAll(world.queue, 'w1', jobs, later);
  const reset = `curl -X POST "$URL/api/webhook-endpoints/${endpoint.id}/reset-circuit" -H "x-api-key: $KEY"`;
  for (const id of [jobs[0]?.messageId ?? '', endpoint.id]) {
    const { advice, next } = await explain(id);
    expect(next).toMatchObject({ what: 'probe' });
    expect(advice).toContainEqual(expect.objectContaining({ command: reset }));
  }
  await world.store.deleteEndpoint(world.org, endpoint.id);
});

test('a dead letter for which its endpoint was disabled too long reports it, and where to look before it is sent again', async () => {
  const { endpoint } = await subscribed();
  await send();
  const [id = ''] = await world.end(soon);
  await world.queue.promote();
  const { client } = world.facade.redis;
  const beganMs = Date.now() - 8 * 86_400_000;
  for (const target of (await world.queue.targets(0)).targets)
    await world.queue.configure(target, targetSetting({ paused: true, revision: '2' }));
  for (const key of await client.keys('test:{s0}:m:*'))
    await client.hset(key, hashFields.message.indexStamp, `${beganMs}-1`, hashFields.message.dueMs, beganMs);
  const number = await client.hget(`test:{s0}:tn:${webhookOrganization(world.org)}`, `${endpoint.applicationId} ${endpoint.id}`);
  await client.hset(`test:{s0}:t:${number}`, hashFields.target.pausedSinceMs, beganMs);
  expect((await world.queue.expirePaused(7 * 86_400_000)).expired).toBe(1);
  const body = await explain(id);
  expect(body).toMatchObject({
    state: 'dlq',
    summary: 'The message is given up. It is a dead letter, because its endpoint or its application was disabled for too long.',
  });
  expect(body.advice.map(({ command }: { command: string }) => command)).toEqual([
    `curl "$URL/api/explain/${endpoint.id}" -H "x-api-key: $KEY"`,
    expect.stringContaining(`/api/outbound-messages/dlq/${id}/retry`),
  ]);
  await world.store.deleteEndpoint(world.org, endpoint.id);
});

test('a dead letter whose endpoint answered 410 reports it, and that the endpoint is to be enabled as long as it is not', async () => {
  const { endpoint } = await subscribed();
  await send();
  const attempt = { ...failure, responseStatus: 410, errorType: 'gone' as const };
  const [id = ''] = await world.end({ type: 'dead', attempt, reason: 'destination_not_found', isRejected: true });
  await world.store.updateEndpoint(world.org, endpoint.id, { isDisabled: true, disabledReason: 'the endpoint answered 410 Gone' });
  const again = expect.stringContaining(`/api/outbound-messages/dlq/${id}/retry`);
  const body = await explain(id);
  expect(body.summary).toBe(
    'The message is given up. It is a dead letter, because its receiver answered 410 Gone, which disabled the endpoint.',
  );
  expect(body.advice).toEqual([
    { text: 'Enable the endpoint.', command: expect.stringContaining(`-X PATCH "$URL/api/webhook-endpoints/${endpoint.id}"`) },
    { text: 'Send it again once the cause is repaired.', command: again },
  ]);
  await world.store.updateEndpoint(world.org, endpoint.id, { isDisabled: false });
  expect((await explain(id)).advice).toEqual([expect.objectContaining({ command: again })]);
  await world.store.deleteEndpoint(world.org, endpoint.id);
  expect((await explain(id)).advice[0].text).toContain('Create what is missing again');
});

test('an event without a subscription says how one is made, unless it was sent to endpoints by name', async () => {
  const { advice } = await explain(await send());
  expect(advice).toEqual([
    {
      text: 'No endpoint subscribes to the type. Subscribe one, then send the event again.',
      command: expect.stringMatching(/^curl -X POST "\$URL\/api\/webhook-subscriptions" .*"eventTypeId":"/),
    },
  ]);
  const named = newWebhookEvent(world.org, [], { sourceId: type.id, webhook: { endpointIds: [`ep_${'a'.repeat(26)}`] } });
  await world.facade.acceptor.accept(named);
  expect((await explain(named.id)).advice).toEqual([]);
});

test('what custom resources disable is to be enabled there, and no command is shown for it', async () => {
  const { org, store } = world;
  const managedBy = 'acme/customer';
  const application = await store.createApplication({ org, name: 'Declared', shard: 0, managedBy });
  const endpoint = await store.createEndpoint(newWebhookEndpoint(application.id, { org, managedBy, isDisabled: true }));
  const subscription = await store.createSubscription({ org, endpointId: endpoint.id, eventTypeId: type.id, managedBy, isEnabled: false });
  await store.updateApplication(org, application.id, { isDisabled: true });
  const told = (noun: string) => ({
    text: `Enable the ${noun} where it is managed, for example in Git: by the custom resource ${managedBy}.`,
  });
  expect((await explain(application.id)).advice).toEqual([told('application')]);
  expect((await explain(endpoint.id)).advice).toEqual([told('endpoint'), told('application')]);
  expect((await explain(subscription.id)).advice).toEqual([told('subscription'), told('endpoint'), told('application')]);
  await store.deleteEndpoint(org, endpoint.id);
});

test('application, endpoint and subscription show whether they are disabled, and how they are enabled', async () => {
  const { org, store } = world;
  const { endpoint, subscription } = await subscribed({ filterExpression: 'event.data.total > 1.0' });
  const ids = [endpoint.applicationId, endpoint.id, subscription.id];
  for (const id of ids) expect(await explain(id)).toMatchObject({ id, state: 'ready', advice: [] });
  await store.updateSubscription(org, subscription.id, { isEnabled: false });
  expect(await explain(subscription.id)).toMatchObject({
    state: 'disabled',
    advice: [{ command: expect.stringContaining('"isEnabled":true') }],
  });
  await store.updateEndpoint(org, endpoint.id, { isDisabled: true, disabledReason: 'it returned 410' });
  const disabled = await explain(endpoint.id);
  expect(disabled.story).toContainEqual(expect.objectContaining({ what: 'disabled', text: expect.stringContaining('it returned 410') }));
  expect(disabled.advice[0].command).toContain(`-X PATCH "$URL/api/webhook-endpoints/${endpoint.id}"`);
  await store.updateApplication(org, endpoint.applicationId, { isDisabled: true });
  expect((await explain(endpoint.applicationId)).advice[0].command).toContain(`/api/webhook-applications/${endpoint.applicationId}`);
  expect(await explain(type.id)).toMatchObject({ kind: 'event type', state: 'ready' });
});
