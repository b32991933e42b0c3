import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import { ownEventData } from '../../support/own-events.ts';
import { breakOff } from '../broken-off.ts';
import { type Answer, type FacadeWorld, startFacadeWorld } from '../facade-world.ts';

let world: FacadeWorld;
let applicationId: string;
let endpointId: string;
const types = ['order.paid', 'order.sent', 'order.made', 'order.lost'];

beforeAll(async () => {
  world = await startFacadeWorld({ inForceTimeoutMs: 20_000 });
  for (const name of types) await post('event-types', { name });
  applicationId = (await post('webhook-applications', { name: 'Customer' })).body.data.id;
  endpointId = (await post('webhook-endpoints', { applicationId, url: 'https://customer.example/' })).body.data.id;
});
afterAll(() => world.stop());

const post = (path: string, body: object, key?: string) =>
  world.request('POST', `/api/${path}`, { body, ...(key !== undefined && { headers: { 'idempotency-key': key } }) });
const countOf = async (path: string): Promise<number> => (await world.request('GET', `/api/${path}`)).body.data.length;

/** A request whose process dies before it has kept the answer, and the same again with its key. */
async function twice(path: string, body: object): Promise<{ first: Answer; second: Answer; key: string }> {
  const key = `${path} ${JSON.stringify(body)}`.replaceAll(/[^!-~]/g, '_').slice(0, 255);
  const first = await post(path, body, key);
  await breakOff(world, key);
  return { first, second: await post(path, body, key), key };
}

describe('a creation that was broken off before its answer was kept is found by the next with its key', () => {
  test.each<[string, () => object]>([
    ['webhook-applications', () => ({ name: 'Twice' })],
    ['webhook-applications', () => ({ name: 'Twice', externalId: 'twice' })],
    ['webhook-endpoints', () => ({ applicationId, url: 'https://customer.example/twice' })],
    ['webhook-subscriptions', () => ({ endpointId, eventTypeId: 'order.paid', isEnabled: false })],
  ])('POST /%s: once, and the answer is the first one', async (path, body) => {
    const before = await countOf(path);
    const { first, second } = await twice(path, body());
    expect([first.status, second.status, second.body]).toEqual([201, 201, first.body]);
    expect(await countOf(path)).toBe(before + 1);
  });

  test('POST /webhook-subscriptions/bulk: with the same counts', async () => {
    const own = (await post('webhook-endpoints', { applicationId, url: 'https://customer.example/bulk' })).body.data.id;
    await post('webhook-subscriptions', { endpointId: own, eventTypeId: 'order.sent' });
    const { first, second } = await twice('webhook-subscriptions/bulk', { endpointId: own, eventTypeIds: types.slice(0, 3) });
    expect(first.body).toMatchObject({ created: 2, skipped: 1 });
    expect([second.status, second.body]).toEqual([201, first.body]);
  });

  test('a creation that was broken off before its answer was kept is found by the next with its key also when the record was changed meanwhile; one that was deleted is recreated', async () => {
    const { first, key } = await twice('webhook-applications', { name: 'Changing' });
    const { id } = first.body.data;
    await world.request('PATCH', `/api/webhook-applications/${id}`, { body: { rateLimitPerSecond: 7 } });
    await breakOff(world, key);
    expect((await post('webhook-applications', { name: 'Changing' }, key)).body.data).toMatchObject({ id, rateLimitPerSecond: 7 });
    await world.request('DELETE', `/api/webhook-applications/${id}`);
    await breakOff(world, key);
    const anew = await post('webhook-applications', { name: 'Changing' }, key);
    expect([anew.status, anew.body.data.id === id]).toEqual([201, false]);
  });
});

describe('an event that was stored by a request that was broken off', () => {
  test('an event that was stored by a request that was broken off is not stored again by the next with its key', async () => {
    await post('webhook-subscriptions', { endpointId, eventTypeId: 'order.lost' });
    const { first, second } = await twice('send-event', { eventType: 'order.lost', payload: 1 });
    expect([first.status, second.status, second.body]).toEqual([201, 201, first.body]);
    expect(first.body.data.messagesQueued).toBe(1);
  });

  test('an event that was stored by a request that was broken off is not stored again among many, and those that were refused are tried again', async () => {
    const late = { eventType: 'order.late', payload: 1 };
    const body = { events: [{ eventType: 'order.lost', payload: 1 }, late, { eventType: 'order.lost', payload: 1 }] };
    const key = 'many';
    const first = await post('send-events', body, key);
    expect(first.body.data[1].error).toBe('Not found');
    await post('event-types', { name: 'order.late' });
    await eventually(async () => expect((await post('send-event', late)).status).toBe(201));
    await breakOff(world, key);
    const second = await post('send-events', body, key);
    expect([second.body.data[0], second.body.data[2]]).toEqual([first.body.data[0], first.body.data[2]]);
    expect(second.body.data[1]).toMatchObject({ messagesQueued: 0 });
    expect(first.body.data[0].eventId).not.toBe(first.body.data[2].eventId);
  });
});

describe('a rotation that was broken off before its answer was kept', () => {
  test.each([{}, { gracePeriodSeconds: 0 }])(
    'a rotation that was broken off before its answer was kept is done once by two requests with %j, and the answer is the first one',
    async (body) => {
      const { id } = (await post('webhook-endpoints', { applicationId, url: 'https://customer.example/rotated' })).body.data;
      const path = `webhook-endpoints/${id}/rotate-secret`;
      const { first, second, key } = await twice(path, body);
      expect([first.status, first.body.secretVersion, second.body]).toEqual([200, 2, first.body]);
      await world.request('PATCH', `/api/webhook-endpoints/${id}`, { body: { description: 'changed' } });
      await breakOff(world, key);
      expect((await post(path, body, key)).body).toEqual(first.body);
      expect((await post(path, body)).body.secretVersion).toBe(3);
    },
  );

  test('a rotation that was broken off, and is requested again, is reported once to a source for own events, without the secret', async () => {
    const source = (await post('sources', { name: 'Own', provider: 'posthorn' })).body;
    const { id, secret } = (await post('webhook-endpoints', { applicationId, url: 'https://customer.example/told' })).body.data;
    const { first, second, key } = await twice(`webhook-endpoints/${id}/rotate-secret`, { gracePeriodSeconds: 60 });
    expect([second.body, (await post(`webhook-endpoints/${id}/rotate-secret`, { gracePeriodSeconds: 60 }, key)).body]).toEqual([
      first.body,
      first.body,
    ]);
    const told = await ownEventData(world.redis.client, 'test:');
    expect(told).toEqual([
      {
        kind: 'endpoint',
        applicationId,
        endpointId: id,
        secretVersion: 2,
        by: 'api',
        rotatedAt: expect.any(String),
        previousSecretExpiresAt: first.body.previousSecretExpiresAt,
      },
    ]);
    for (const each of [secret, first.body.secret]) expect(JSON.stringify(told)).not.toContain(each.slice('whsec_'.length, 12));
    await world.request('DELETE', `/api/sources/${source.id}`);
  });
});

test('an upsert that was broken off updates what it has made when it is sent again', async () => {
  const put = () => world.request('PUT', '/api/webhook-applications/upsert', { body: { externalId: 'again', name: 'Again' } });
  const [first, second] = [await put(), await put()];
  expect([first.status, second.status, second.body.data.id]).toEqual([201, 200, first.body.data.id]);
});
