import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import { dead, delivered } from '../../support/queue-worker.ts';
import { later, type MessagesWorld, startMessagesWorld } from './messages-world.ts';

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

test('a webhook event tells its messages and why subscriptions got nothing', async () => {
  const one = await subscribed();
  const other = await subscribed({ labelFilters: { tier: 'gold' } });
  const eventId = await send({ tier: 'bronze' });
  await world.end(delivered);
  const body = await explain(eventId);
  expect(body).toMatchObject({ kind: 'webhook event', state: 'delivered', waitsFor: null });
  expect(body.story.find(({ what }: { what: string }) => what === 'message').data).toMatchObject({ endpointId: one.endpoint.id });
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
  expect(body).toMatchObject({ state: 'dlq', summary: expect.stringContaining('all its attempts failed') });
  expect(body.advice.at(-1).command).toContain(`/api/outbound-messages/dlq/${deadId}/retry`);
  await world.store.deleteEndpoint(world.org, endpoint.id);
});

test('application, endpoint and subscription tell whether they are disabled, and how they are enabled', async () => {
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
