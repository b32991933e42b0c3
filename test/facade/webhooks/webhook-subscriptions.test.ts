import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { type FacadeWorld, startFacadeWorld } from '../facade-world.ts';

let world: FacadeWorld;
let org: string;
const types: Record<string, string> = {};
let applicationId: string;
let endpointId: string;

beforeAll(async () => {
  world = await startFacadeWorld({ inForceTimeoutMs: 20_000 });
  org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
  for (const name of ['order.paid', 'order.sent', 'order.line_item'])
    types[name] = (await request('POST', 'event-types', { name, displayName: `Shown ${name}` })).body.data.id;
});
afterAll(() => world.stop());
beforeEach(async () => {
  applicationId = (await request('POST', 'webhook-applications', { name: 'Customer' })).body.data.id;
  endpointId = await newEndpoint();
});

const request = (method: string, path: string, body?: object) => world.request(method, `/api/${path}`, body === undefined ? {} : { body });
async function newEndpoint(): Promise<string> {
  const { body } = await request('POST', 'webhook-endpoints', { applicationId, url: 'https://customer.example/hooks' });
  return body.data.id;
}
const create = (body: object) => request('POST', 'webhook-subscriptions', { endpointId, eventTypeId: types['order.paid'], ...body });
const bulk = (body: object) => request('POST', 'webhook-subscriptions/bulk', { endpointId, ...body });
const change = (id: string, body: object) => request('PATCH', `webhook-subscriptions/${id}`, body);
const read = (path: string) => request('GET', `webhook-subscriptions${path}`);

describe('creating a subscription', () => {
  test('creating a subscription answers 201 with the record, its defaults and what it refers to', async () => {
    const { status, body } = await create({});
    expect(status).toBe(201);
    expect(body).toEqual({
      data: {
        id: expect.stringMatching(/^sub_/),
        organizationId: expect.stringMatching(/^org_/),
        endpointId,
        eventTypeId: types['order.paid'],
        filterExpression: null,
        labelFilters: {},
        labelFilterMode: 'all',
        transformId: null,
        isEnabled: true,
        lastFilterError: null,
        endpointUrl: 'https://customer.example/hooks',
        eventTypeName: 'order.paid',
        eventTypeDisplayName: 'Shown order.paid',
        applicationId,
        applicationName: 'Customer',
        createdAt: expect.any(String),
        updatedAt: expect.any(String),
      },
    });
    expect((await read(`/${body.data.id}`)).body).toEqual(body);
    expect((await request('GET', `webhook-endpoints/${endpointId}`)).body.data.subscriptionCount).toBe(1);
  });

  test('creating a subscription takes everything that can be set, the event type by its name and the transform by its slug', async () => {
    const transform = (await request('POST', 'transforms', { name: 'Shorter', code: 'payload.id' })).body;
    const expression = (tier: string) => `event.data.total > 100.0 && labels.tier == "${tier}"`;
    const sent = {
      filterExpression: expression('g'.repeat(1000 - expression('').length)),
      labelFilters: { region: ['eu', 'us'], tier: 'gold' },
      labelFilterMode: 'any',
      isEnabled: false,
    };
    const { body } = await create({ ...sent, eventTypeId: 'order.line_item', transformId: 'shorter' });
    expect(body.data).toMatchObject({ ...sent, eventTypeId: types['order.line_item'], transformId: transform.id });
  });

  test('creating a subscription of the same pair again is 409 Duplicate subscription', async () => {
    await create({});
    const { status, body } = await create({ isEnabled: false });
    expect(status).toBe(409);
    expect(body).toEqual({ error: 'Conflict', message: 'Duplicate subscription', details: {} });
  });

  test('creating a subscription of the same pair at the same time makes one', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => create({})));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array.from({ length: 9 }, () => 409)]);
  });

  test.each([
    [{ endpointId: undefined }, 'endpointId', /required/],
    [{ eventTypeId: undefined }, 'eventTypeId', /required/],
    [{ filterExpression: 'event.type = "a"' }, 'filterExpression', /^line 1, column 12: /],
    [{ filterExpression: 'event.data.a\n  == evnet' }, 'filterExpression', /^line 2, column 6: there is no evnet/],
    [{ filterExpression: 'x'.repeat(1001) }, 'filterExpression', /1000/],
    [{ labelFilters: { tier: 1 } }, 'labelFilters.tier', /^must be a string or a list, not a number$/],
    [{ labelFilters: ['tier'] }, 'labelFilters', /object/],
    [{ labelFilters: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`l${n}`, 'x'])) }, 'labelFilters', /20/],
    [{ labelFilterMode: 'none' }, 'labelFilterMode', /all, any/],
    [{ transformId: 'nothing-such' }, 'transformId', /nothing-such/],
    [{ isEnabled: 'no' }, 'isEnabled', /./],
    [{ filter: 'x' }, 'filter', /./],
  ])('creating a subscription with %j is 400 with the field and the reason in the details', async (sent, field, reason) => {
    const { status, body } = await create(sent);
    expect(status).toBe(400);
    expect(body).toEqual({ error: 'Invalid input', message: expect.any(String), details: { [field]: [expect.stringMatching(reason)] } });
    expect((await read(`?endpointId=${endpointId}`)).body.data).toEqual([]);
  });

  test.each([
    { endpointId: 'ep_aaaaaaaaaaaaaaaaaaaaaaaaaa' },
    { eventTypeId: 'etp_aaaaaaaaaaaaaaaaaaaaaaaaaa' },
    { eventTypeId: 'order.unknown' },
  ])('creating a subscription with %j is 404', async (sent) => {
    const { status, body } = await create(sent);
    expect([status, body.error]).toEqual([404, 'Not found']);
  });
});

describe('subscribing to several event types', () => {
  test('subscribing to several event types makes those that are missing and skips the others', async () => {
    await create({});
    const { status, body } = await bulk({
      eventTypeIds: ['order.paid', types['order.sent'], 'order.line_item'],
      labelFilters: { tier: 'gold' },
      labelFilterMode: 'any',
    });
    expect(status).toBe(201);
    expect(body).toMatchObject({ created: 2, skipped: 1 });
    expect(body.subscriptions.map(({ eventTypeName }: { eventTypeName: string }) => eventTypeName).sort()).toEqual([
      'order.line_item',
      'order.sent',
    ]);
    for (const subscription of body.subscriptions) {
      expect(subscription).toMatchObject({ endpointId, labelFilters: { tier: 'gold' }, labelFilterMode: 'any', isEnabled: true });
      expect((await read(`/${subscription.id}`)).body.data).toEqual(subscription);
    }
    expect((await bulk({ eventTypeIds: ['order.paid', 'order.sent'] })).body).toEqual({ created: 0, skipped: 2, subscriptions: [] });
  });

  test('subscribing to several event types makes one of an event type that is named twice, by its name and its id too', async () => {
    const { body } = await bulk({ eventTypeIds: ['order.sent', types['order.sent'], 'order.sent', 'order.paid'] });
    expect(body).toMatchObject({ created: 2, skipped: 2 });
    expect((await read(`?endpointId=${endpointId}`)).body.data).toHaveLength(2);
    const most = await bulk({ eventTypeIds: Array.from({ length: 100 }, () => 'order.sent') });
    expect([most.status, most.body.skipped]).toEqual([201, 100]);
  });

  test('subscribing to several event types of which one does not exist is 404 and makes none', async () => {
    const unknown = await bulk({ eventTypeIds: ['order.paid', 'order.unknown'] });
    expect([unknown.status, unknown.body.message]).toEqual([404, 'There is no event type "order.unknown".']);
    expect((await read(`?endpointId=${endpointId}`)).body.data).toEqual([]);
  });

  test.each([
    [{ eventTypeIds: [] }, 'eventTypeIds'],
    [{ eventTypeIds: Array.from({ length: 101 }, (_, n) => `t${n}`) }, 'eventTypeIds'],
    [{}, 'eventTypeIds'],
    [{ eventTypeIds: ['order.paid'], labelFilterMode: 'x' }, 'labelFilterMode'],
  ])('subscribing to several event types with %j is 400', async (sent, field) => {
    const { status, body } = await bulk(sent);
    expect([status, Object.keys(body.details)]).toEqual([400, [field]]);
  });
});

describe('changing a subscription', () => {
  test('changing a subscription keeps what is not sent, and null takes filter and transform away', async () => {
    const { id } = (await create({ filterExpression: 'event.data.a == 1.0', labelFilters: { tier: 'gold' } })).body.data;
    const { status, body } = await change(id, { isEnabled: false, labelFilterMode: 'any' });
    expect(status).toBe(200);
    expect(body.data).toMatchObject({
      filterExpression: 'event.data.a == 1.0',
      labelFilters: { tier: 'gold' },
      labelFilterMode: 'any',
      isEnabled: false,
    });
    expect((await change(id, { filterExpression: null, labelFilters: {} })).body.data).toMatchObject({
      filterExpression: null,
      labelFilters: {},
    });
  });

  test('changing a subscription refuses a filter that does not compile, another endpoint and another event type', async () => {
    const { data } = (await create({})).body;
    expect((await change(data.id, { filterExpression: 'event.' })).body.details).toEqual({
      filterExpression: [expect.stringMatching(/^line 1, column/)],
    });
    expect((await change(data.id, { endpointId: await newEndpoint() })).body.details).toEqual({ endpointId: [expect.any(String)] });
    expect((await change(data.id, { eventTypeId: 'order.sent' })).body.details).toEqual({ eventTypeId: [expect.any(String)] });
    expect((await change(data.id, { ...data, eventTypeId: 'order.paid' })).status).toBe(200);
  });
});

test('deleting answers success, and the pair is free again', async () => {
  const { id } = (await create({})).body.data;
  const answer = await request('DELETE', `webhook-subscriptions/${id}`);
  expect([answer.status, answer.body]).toEqual([200, { success: true }]);
  expect((await read(`/${id}`)).status).toBe(404);
  expect((await create({})).status).toBe(201);
});

test('a subscription goes with its event type', async () => {
  const eventTypeId = (await request('POST', 'event-types', { name: 'order.short_lived' })).body.data.id;
  const { id } = (await create({ eventTypeId })).body.data;
  expect((await request('GET', 'event-types/order.short_lived')).body.data.subscriptionCount).toBe(1);
  expect((await request('GET', 'event-types?search=short_lived')).body.data[0].subscriptionCount).toBe(1);
  expect((await request('DELETE', 'event-types/order.short_lived')).status).toBe(200);
  expect((await read(`/${id}`)).status).toBe(404);
  expect((await create({ eventTypeId })).status).toBe(404);
});

test('a subscription is not made when its event type is deleted just before it is stored', async () => {
  const eventTypeId = (await request('POST', 'event-types', { name: 'order.raced' })).body.data.id;
  const [found, deleted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const storing = jest.spyOn(world.webhooks, 'createSubscription').mockImplementationOnce(async (subscription) => {
    found.resolve();
    await deleted.promise;
    return await world.webhooks.createSubscription(subscription);
  });
  const creation = create({ eventTypeId });
  await found.promise;
  expect((await request('DELETE', `event-types/${eventTypeId}`)).status).toBe(200);
  deleted.resolve();
  expect((await creation).status).toBe(404);
  storing.mockRestore();
  expect((await read(`?applicationId=${applicationId}`)).body.data).toEqual([]);
  expect(await world.webhooks.eventTypeIds(org)).not.toContain(eventTypeId);
});

test('a transform that subscriptions use is 409 IN_USE for whoever deletes it', async () => {
  await request('POST', 'transforms', { name: 'Needed', code: 'payload.id' });
  const remove = () => request('DELETE', 'transforms/needed');
  const { id } = (await create({ transformId: 'needed' })).body.data;
  await create({ transformId: 'needed', eventTypeId: 'order.sent' });
  expect(await remove()).toMatchObject({
    status: 409,
    body: { error: 'Conflict', code: 'IN_USE', message: 'The transform is used by 2 webhook subscriptions.' },
  });
  await change(id, { transformId: null });
  expect((await remove()).body.message).toBe('The transform is used by 1 webhook subscription.');
  await request('DELETE', `webhook-endpoints/${endpointId}`);
  expect((await remove()).status).toBe(204);
});

test('a subscription that a custom resource keeps cannot be changed through the API', async () => {
  const { id } = await world.webhooks.createSubscription({
    org,
    endpointId,
    eventTypeId: types['order.paid'] ?? '',
    managedBy: 'acme/sub',
  });
  const answers = [await change(id, { isEnabled: false }), await request('DELETE', `webhook-subscriptions/${id}`)];
  for (const { status, headers } of answers) expect([status, headers.get('x-error-code')]).toEqual([409, 'FIELD_MANAGED']);
});

describe('the list', () => {
  test('filters by endpoint, event type, application and isEnabled, and continues by cursor', async () => {
    const other = await newEndpoint();
    const ids: string[] = [];
    for (const body of [{}, { eventTypeId: 'order.sent', isEnabled: false }, { endpointId: other }])
      ids.unshift((await create(body)).body.data.id);
    const list = async (query: string) => (await read(`?applicationId=${applicationId}${query}`)).body;
    const idsOf = (body: { data: { id: string }[] }) => body.data.map(({ id }) => id);
    expect(idsOf(await list(''))).toEqual(ids);
    expect(idsOf(await list(`&endpointId=${other}`))).toEqual([ids[0]]);
    expect(idsOf((await read(`?endpointId=${endpointId}`)).body)).toEqual([ids[1], ids[2]]);
    expect(idsOf(await list('&eventTypeId=order.sent'))).toEqual([ids[1]]);
    expect(idsOf(await list(`&eventTypeId=${types['order.paid']}`))).toEqual([ids[0], ids[2]]);
    expect(idsOf(await list('&isEnabled=false'))).toEqual([ids[1]]);
    expect(idsOf(await list('&isEnabled=true'))).toEqual([ids[0], ids[2]]);
    const first = await list('&limit=2');
    expect(first.pagination).toEqual({ hasMore: true, nextCursor: expect.any(String) });
    expect([...idsOf(first), ...idsOf(await list(`&limit=2&cursor=${encodeURIComponent(first.pagination.nextCursor)}`))]).toEqual(ids);
    expect(first.data[0]).toEqual((await read(`/${ids[0]}`)).body.data);
  });

  test.each(['limit=0', 'isEnabled=1', 'cursor=abc'])('the list with %s is 400', async (query) => {
    const { status, body } = await read(`?${query}`);
    expect([status, Object.keys(body.details)]).toEqual([400, [query.split('=')[0]]]);
  });
});
