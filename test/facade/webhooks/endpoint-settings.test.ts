import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { webhookOrganization } from '../../../src/core/webhook.ts';
import { RedisMessageReader } from '../../../src/data/history/message-reader.ts';
import { eventually } from '../../support/eventually.ts';
import { type FacadeWorld, startFacadeWorld } from '../facade-world.ts';

let world: FacadeWorld;
let applicationId: string;
beforeAll(async () => {
  world = await startFacadeWorld();
  applicationId = (await world.request('POST', '/api/webhook-applications', { body: { name: 'Customer' } })).body.data.id;
});
afterAll(() => world?.stop());

const url = 'https://customer.example/hooks';
const create = (body: object) => world.request('POST', '/api/webhook-endpoints', { body: { applicationId, url, ...body } });
const change = (id: string, body: object) => world.request('PATCH', `/api/webhook-endpoints/${id}`, { body });
const fill = <T>(length: number, value: T): T[] => Array.from({ length }, () => value);

test('delays and success statuses are taken at their bounds, and read as they were sent', async () => {
  const sent = { retryDelays: [1, ...fill(24, 86_400)], successStatusCodes: [200, 599, '2xx', '5XX', ...fill(46, 200)] };
  const { status, body } = await create(sent);
  expect([status, body.data]).toEqual([201, expect.objectContaining(sent)]);
  expect((await world.request('GET', `/api/webhook-endpoints/${body.data.id}`)).body.data).toMatchObject(sent);
});

test.each([
  [{ retryDelays: [] }, 'retryDelays'],
  [{ retryDelays: fill(26, 1) }, 'retryDelays'],
  [{ retryDelays: 5 }, 'retryDelays'],
  [{ retryDelays: [1, 0] }, 'retryDelays[1]'],
  [{ retryDelays: [86_401] }, 'retryDelays[0]'],
  [{ retryDelays: [1.5] }, 'retryDelays[0]'],
  [{ retryDelays: ['5'] }, 'retryDelays[0]'],
  [{ successStatusCodes: [] }, 'successStatusCodes'],
  [{ successStatusCodes: fill(51, 200) }, 'successStatusCodes'],
  [{ successStatusCodes: [200, 199] }, 'successStatusCodes[1]'],
  [{ successStatusCodes: ['1xx'] }, 'successStatusCodes[0]'],
  [{ successStatusCodes: [600] }, 'successStatusCodes[0]'],
  [{ successStatusCodes: [200.5] }, 'successStatusCodes[0]'],
  [{ successStatusCodes: ['6xx'] }, 'successStatusCodes[0]'],
  [{ successStatusCodes: ['200'] }, 'successStatusCodes[0]'],
  [{ successStatusCodes: [null] }, 'successStatusCodes[0]'],
  [{ backoffType: 'fixed' }, 'backoffType'],
])('delays and success statuses of %j are 400 with the field in the details, on create and on change', async (sent, field) => {
  const { id } = (await create({})).body.data;
  for (const { status, body } of [await create(sent), await change(id, sent)])
    expect([status, body.details]).toEqual([400, { [field]: [expect.any(String)] }]);
});

test.each([
  [199, 'must be at least 200'],
  [600, 'must be at most 599'],
  ['6xx', 'must be a status from 200 to 599, or a class of statuses such as 2xx'],
  [true, 'must be a number or a string, not a boolean'],
])('a success status of %j is refused in words', async (wrong, complaint) => {
  expect((await create({ successStatusCodes: [wrong] })).body.details).toEqual({ 'successStatusCodes[0]': [complaint] });
});

test('delays and success statuses change as whole lists, stay when they are not sent, and null takes them away', async () => {
  const { id } = (await create({ retryDelays: [5, 60], successStatusCodes: [202] })).body.data;
  expect((await change(id, { retryDelays: [30] })).body.data).toMatchObject({ retryDelays: [30], successStatusCodes: [202] });
  expect((await change(id, { successStatusCodes: ['3xx'] })).body.data).toMatchObject({ retryDelays: [30], successStatusCodes: ['3xx'] });
  const neither = { retryDelays: null, successStatusCodes: null };
  expect((await change(id, neither)).body.data).toMatchObject(neither);
});

test('an event makes messages with as many attempts as the schedule of their endpoint has, also when it has just been changed', async () => {
  const type = (await world.request('POST', '/api/event-types', { body: { name: 'order.paid' } })).body.data;
  await eventually(async () => expect(await world.registry.getOfAny('eventType', type.id)).not.toBeNull());
  const [usual, own] = [(await create({})).body.data.id, (await create({})).body.data.id];
  for (const endpointId of [usual, own])
    await world.request('POST', '/api/webhook-subscriptions', { body: { endpointId, eventTypeId: type.id } });
  const org = webhookOrganization(await world.organizationId('acme'));
  const messages = new RedisMessageReader({ redis: world.redis.client, prefix: 'test:' });
  for (const [retryDelays, attempts] of [
    [null, 8],
    [[5, 60], 3],
    [[5], 2],
    [null, 8],
  ] as const) {
    await change(own, { retryDelays });
    const { eventId } = (await world.request('POST', '/api/send-event', { body: { eventType: type.name, payload: null } })).body.data;
    const queued = await messages.deliveriesOfEvent(org, eventId);
    expect(new Map(queued.map(({ destinationId, maxAttempts }) => [destinationId, maxAttempts]))).toEqual(
      new Map([
        [usual, 8],
        [own, attempts],
      ]),
    );
  }
});
