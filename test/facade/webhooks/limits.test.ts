import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import type { Plan } from '../../../src/core/records.ts';
import { eventually } from '../../support/eventually.ts';
import { newWebhookEndpoint } from '../../support/webhooks.ts';
import { type FacadeWorld, startFacadeWorld } from '../facade-world.ts';

let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld();
});
afterAll(() => world.stop());

const lists = ['/event-types', '/webhook-applications', '/webhook-endpoints', '/webhook-subscriptions', '/outbound-messages'];

describe('every list', () => {
  test.each(lists)('every list of %s has pages of 1 to 100 records', async (path) => {
    const asked = async (limit: string | number) => (await world.request('GET', `/api${path}?limit=${limit}`)).status;
    expect([await asked(1), await asked(100)]).toEqual([200, 200]);
    for (const wrong of [0, 101, -1, 1.5, 'all', '']) {
      const { status, body } = await world.request('GET', `/api${path}?limit=${wrong}`);
      expect([status, body.error, Object.keys(body.details)]).toEqual([400, 'Invalid input', ['limit']]);
    }
    const { body } = await world.request('GET', `/api${path}`);
    expect(Object.keys(body).toSorted()).toEqual(['data', 'pagination']);
    const { scanned = 0, ...pagination } = body.pagination;
    expect([pagination, scanned]).toEqual([{ hasMore: false, nextCursor: null }, 0]);
  });
});

test('a list has 50 records when nothing is said', async () => {
  await world.addOrganization('many');
  const key = await world.addKey('many');
  const org = await world.organizationId('many');
  for (let n = 0; n < 51; n++) {
    const name = `many.n${n}`;
    await world.store.apply({ kind: 'WebhookEventType', metadata: { name, namespace: 'many' }, spec: { name } }, { manager: 'kubectl' });
  }
  const listed = async (path: string) => (await world.request('GET', `/api${path}`, { key })).body;
  const eventTypeId = await eventually(async () => {
    const { data, pagination } = await listed('/event-types');
    expect([data.length, pagination.hasMore]).toEqual([50, true]);
    return data[0].id;
  });
  for (let n = 0; n < 51; n++) {
    const { id: applicationId } = await world.webhooks.createApplication({ org, name: `Customer ${n}`, shard: 0 });
    const { id: endpointId } = await world.webhooks.createEndpoint(newWebhookEndpoint(applicationId, { org }));
    await world.webhooks.createSubscription({ org, endpointId, eventTypeId });
  }
  for (const path of ['/webhook-applications', '/webhook-endpoints', '/webhook-subscriptions']) {
    const { data, pagination } = await listed(path);
    expect([path, data.length, pagination.hasMore]).toEqual([path, 50, true]);
  }
});

test('an organization makes 1000 requests per minute besides those that send events, and hears how many are left', async () => {
  await world.addOrganization('busy', 'free');
  const key = await world.addKey('busy');
  const asked = () => world.request('GET', '/api/webhook-applications', { key });
  const askedAtMs = Date.now();
  const { headers } = await asked();
  expect([headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')]).toEqual(['1000', '999']);
  const reset = Number(headers.get('x-ratelimit-reset'));
  expect(reset - askedAtMs / 1000).toBeGreaterThan(-1);
  expect(reset - Date.now() / 1000).toBeLessThanOrEqual(61);
});

test.each<[Plan, number, number]>([
  ['free', 1000, 100],
  ['starter', 1000, 1000],
  ['pro', 1000, 5000],
  ['business', 1000, 10_000],
])('an organization makes with the plan %s %i requests and sends %i events per minute, and no more', async (plan, requests, events) => {
  await world.addOrganization(`plan-${plan}`, plan);
  const key = await world.addKey(`plan-${plan}`);
  const { client } = world.redis;
  const counters = () => client.keys('test:{rate:*');
  for (const [limit, ask] of [
    [requests, () => world.request('GET', '/api/webhook-applications', { key })],
    [events, () => world.request('POST', '/api/send-event', { key, body: { eventType: 'no.such_type', payload: 1 } })],
  ] as const) {
    const before = new Set(await counters());
    const first = await ask();
    expect([first.headers.get('x-ratelimit-limit'), first.headers.get('x-ratelimit-remaining')]).toEqual([`${limit}`, `${limit - 1}`]);
    const [counter = ''] = (await counters()).filter((each) => !before.has(each));
    await client.incrby(counter, limit - 2);
    const last = await ask();
    expect([last.status, last.headers.get('x-ratelimit-remaining')]).toEqual([first.status, '0']);
    const refused = await ask();
    expect([refused.status, refused.body.error]).toEqual([429, 'Rate limit exceeded']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  }
});

test('the plan enterprise has no limit of requests and events', async () => {
  const answers = [await world.request('GET', '/api/event-types'), await world.request('POST', '/api/send-event', { body: {} })];
  expect(answers.map(({ headers }) => headers.get('x-ratelimit-limit'))).toEqual([null, null]);
});

test('at most 100 events are sent at once', async () => {
  const send = (count: number) =>
    world.request('POST', '/api/send-events', {
      body: { events: Array.from({ length: count }, () => ({ eventType: 'no.such_type', payload: 1 })) },
    });
  const most = await send(100);
  expect([most.status, most.body.data.length]).toEqual([201, 100]);
  for (const count of [0, 101]) {
    const { status, body } = await send(count);
    expect([status, body.error, Object.keys(body.details)]).toEqual([400, 'Invalid input', ['events']]);
  }
});

test('an event may be as large in every part as it may be', async () => {
  await world.request('POST', '/api/event-types', { body: { name: 'order.large' } });
  const { body: application } = await world.request('POST', '/api/webhook-applications', { body: { name: 'Large' } });
  const { body: endpoint } = await world.request('POST', '/api/webhook-endpoints', {
    body: { applicationId: application.data.id, url: 'https://large.example' },
  });
  const sent = {
    labels: Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`${i}`.padEnd(128, 'k'), 'v'.repeat(512)])),
    metadata: { a: 'x'.repeat(16_384 - '{"a":""}'.length) },
    idempotencyKey: 'k'.repeat(255),
  };
  const endpointIds = Array.from({ length: 100 }, () => endpoint.data.id);
  const { status, body } = await world.request('POST', '/api/send-event', {
    body: { eventType: 'order.large', payload: 1, endpointIds, ...sent },
  });
  expect([status, body.data.messagesQueued]).toEqual([201, 0]);
  expect((await world.request('GET', `/api/webhook-events/${body.data.eventId}`)).body.data).toMatchObject(sent);
});

test('a send that would cross the messages of the month is refused whole: 429 Monthly limit exceeded', async () => {
  const spec = { namespace: 'metered', plan: 'free' as const, limits: { monthlyMessages: 1 } };
  await world.store.apply({ kind: 'Organization', metadata: { name: 'metered' }, spec }, { manager: 'kubectl' });
  await eventually(() => world.store.get('Namespace', { name: 'metered' }));
  const key = await world.addKey('metered');
  const make = async (path: string, body: object) => (await world.request('POST', `/api${path}`, { key, body })).body.data;
  await make('/event-types', { name: 'order.paid' });
  const application = await make('/webhook-applications', { name: 'Customer' });
  for (let n = 0; n < 2; n++) {
    const endpoint = await make('/webhook-endpoints', { applicationId: application.id, url: `https://c${n}.example/` });
    await make('/webhook-subscriptions', { endpointId: endpoint.id, eventTypeId: 'order.paid' });
  }
  const refused = await world.request('POST', '/api/send-event', { key, body: { eventType: 'order.paid', payload: {} } });
  expect([refused.status, refused.body.error, refused.headers.get('x-error-code')]).toEqual([
    429,
    'Monthly limit exceeded',
    'QUOTA_EXCEEDED',
  ]);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await world.request('GET', '/api/outbound-messages', { key })).body.data).toEqual([]);
});

test('what is left of the messages of the month is explained, with what to do once nothing is', async () => {
  const spec = { namespace: 'counted', plan: 'free' as const, limits: { monthlyMessages: 1 } };
  await world.store.apply({ kind: 'Organization', metadata: { name: 'counted' }, spec }, { manager: 'kubectl' });
  await eventually(() => world.store.get('Namespace', { name: 'counted' }));
  const key = await world.addKey('counted');
  const make = async (path: string, body: object) => (await world.request('POST', `/api${path}`, { key, body })).body.data;
  const source = await world.create('sources', {}, key);
  await make('/event-types', { name: 'order.paid' });
  const [eventType] = (await world.request('GET', '/api/event-types', { key })).body.data;
  const application = await make('/webhook-applications', { name: 'Customer' });
  const endpoint = await make('/webhook-endpoints', { applicationId: application.id, url: 'https://c.example/' });
  await make('/webhook-subscriptions', { endpointId: endpoint.id, eventTypeId: 'order.paid' });
  const explained = async () =>
    await Promise.all(
      [source.id, eventType.id, endpoint.id].map(async (id) => {
        const { body } = await world.request('GET', `/api/explain/${id}`, { key });
        const [month] = body.story.filter(({ what }: { what: string }) => what === 'month');
        const isAdvised = body.advice.some(({ text }: { text: string }) => text.includes('spec.limits.monthlyMessages'));
        return [month.data.left, month.text.includes('are refused until'), isAdvised];
      }),
    );
  expect(await explained()).toEqual(Array.from({ length: 3 }, () => [1, false, false]));
  await world.request('POST', '/api/send-event', { key, body: { eventType: 'order.paid', payload: {} } });
  expect(await explained()).toEqual(Array.from({ length: 3 }, () => [0, true, true]));
});

test('an organization that has more than its share of Redis is refused event by event: 429 Queue full, with Retry-After', async () => {
  const spec = { namespace: 'greedy', plan: 'enterprise' as const };
  await world.store.apply({ kind: 'Organization', metadata: { name: 'greedy' }, spec }, { manager: 'kubectl' });
  await eventually(() => world.store.get('Namespace', { name: 'greedy' }));
  const key = await world.addKey('greedy');
  await world.request('POST', '/api/event-types', { key, body: { name: 'order.paid' } });
  const body = { eventType: 'order.paid', payload: {} };
  expect((await world.request('POST', '/api/send-event', { key, body })).status).toBe(201);
  const { client } = world.redis;
  try {
    await client.config('SET', 'maxmemory', '1gb');
    const held = String(2 ** 30);
    await client.hdel('test:{s0}:ctl', 'lease');
    await client.hset('test:{s0}:ub', { '*': held, [await world.organizationId('greedy')]: held });
    const refused = await eventually('the organization to be refused', 30_000, async () => {
      const answer = await world.request('POST', '/api/send-event', { key, body });
      return answer.status === 429 ? answer : undefined;
    });
    expect([refused.body.error, refused.headers.get('x-error-code'), refused.headers.get('retry-after')]).toEqual([
      'Queue full',
      'QUEUE_FULL',
      '10',
    ]);
    const many = await world.request('POST', '/api/send-events', { key, body: { events: [body, { ...body, eventType: 'no.such_type' }] } });
    expect([many.status, many.body.data.map(({ error }: { error: string }) => error)]).toEqual([201, ['Queue full', 'Not found']]);
    expect((await world.request('POST', '/api/send-event', { body: { eventType: 'order.large', payload: 1 } })).status).toBe(201);
  } finally {
    await client.config('SET', 'maxmemory', '0');
    await client.hdel('test:{s0}:ctl', 'lease', 'over');
    await client.del('test:{s0}:ub');
  }
});

describe('where the matches of an event are not all known at once', () => {
  async function organizationWith(slug: string, monthlyMessages?: number): Promise<{ key: string; endpointIds: string[] }> {
    const spec = { namespace: slug, plan: 'enterprise' as const, ...(monthlyMessages !== undefined && { limits: { monthlyMessages } }) };
    await world.store.apply({ kind: 'Organization', metadata: { name: slug }, spec }, { manager: 'kubectl' });
    await eventually(() => world.store.get('Namespace', { name: slug }));
    const key = await world.addKey(slug);
    const org = await world.organizationId(slug);
    const { id: eventTypeId } = (await world.request('POST', '/api/event-types', { key, body: { name: 'order.paid' } })).body.data;
    await eventually(async () => expect(await world.registry.getOfAny('eventType', eventTypeId)).not.toBeNull());
    const { id: applicationId } = await world.webhooks.createApplication({ org, name: 'Customer', shard: 0 });
    const endpointIds: string[] = [];
    for (let n = 0; n < 4; n++) {
      const { id } = await world.webhooks.createEndpoint(newWebhookEndpoint(applicationId, { org }));
      await world.webhooks.createSubscription({ org, endpointId: id, eventTypeId });
      endpointIds.push(id);
    }
    return { key, endpointIds };
  }
  /** The matcher knows one of several matches, as of a type whose candidates it cannot keep, and leaves the others to the expansion. */
  beforeAll(() => {
    const { matcher } = world.sending;
    const match = matcher.match.bind(matcher);
    jest.spyOn(matcher, 'match').mockImplementation(async (...args) => {
      const { first } = await match(...args);
      const [one, two] = first;
      if (one === undefined || two === undefined) return { first, total: first.length, isCounted: true, rest: null };
      return { first: [one], total: 1, isCounted: false, rest: { from: two.place, end: (first.at(-1)?.place ?? 0) + 1 } };
    });
  });
  afterAll(() => void jest.restoreAllMocks());
  const send = (key: string, more: object = {}) =>
    world.request('POST', '/api/send-event', { key, body: { eventType: 'order.paid', payload: {}, ...more } });
  const queuedOf = async (key: string) => (await world.request('GET', '/api/outbound-messages', { key })).body.data.length;

  test('they are counted before an organization with a monthly limit is answered, and a send that would cross it is refused whole', async () => {
    const { key, endpointIds } = await organizationWith('counting', 5);
    const first = await send(key, { idempotencyKey: 'a' });
    expect([first.status, first.body.data]).toMatchObject([201, { messagesQueued: 4, endpoints: [{ id: endpointIds[0] }] }]);
    await eventually(async () => expect(await queuedOf(key)).toBe(4));
    for (const idempotencyKey of [undefined, 'b']) {
      const refused = await send(key, { idempotencyKey });
      expect([refused.status, refused.body.error, refused.headers.get('x-error-code')]).toEqual([
        429,
        'Monthly limit exceeded',
        'QUOTA_EXCEEDED',
      ]);
    }
    expect((await send(key, { idempotencyKey: 'a' })).body).toEqual(first.body);
    // Nothing of what was refused was counted: the limit still permits one, and no more.
    expect([(await send(key, { endpointId: endpointIds[3] })).status, (await send(key, { endpointId: endpointIds[3] })).status]).toEqual([
      201, 429,
    ]);
    expect(await queuedOf(key)).toBe(5);
  });

  test('without a monthly limit nothing is counted for the answer', async () => {
    const { key } = await organizationWith('unlimited');
    const counted = jest.spyOn(world.sending.counter, 'total');
    expect((await send(key)).body.data.messagesQueued).toBe(1);
    await eventually(async () => expect(await queuedOf(key)).toBe(4));
    expect(counted).not.toHaveBeenCalled();
  });
});

test('a credential goes by both headers and both forms of a path; without a good one it is 401, without the scope 403', async () => {
  const ask = (path: string, headers: Record<string, string>) => world.request('GET', path, { key: null, headers });
  const id = await world.organizationId('acme');
  for (const headers of [{ authorization: `Bearer ${world.admin}` }, { 'x-api-key': world.admin }] as Record<string, string>[])
    for (const path of ['/api/event-types', '/api/organizations/acme/event-types', `/api/organizations/${id}/event-types`])
      expect((await ask(path, headers)).status).toBe(200);
  for (const headers of [{}, { authorization: 'Bearer ph_no' }, { 'x-api-key': 'ph_no' }] as Record<string, string>[]) {
    const { status, body } = await ask('/api/event-types', headers);
    expect([status, body]).toEqual([401, { error: 'Unauthorized', message: expect.any(String), details: {} }]);
  }
  const viewer = await world.addKey('acme', { role: 'viewer' });
  const refused = await world.request('POST', '/api/webhook-applications', { key: viewer, body: { name: 'Customer' } });
  expect([refused.status, refused.body]).toEqual([403, { error: 'Forbidden', message: expect.any(String), details: {} }]);
});

test('an unknown path, a wrong method, a body of another type and one that is no JSON are errors of the same form', async () => {
  const url = '/api/webhook-applications';
  const form = (error: string) => ({ error, message: expect.any(String), details: {} });
  const text = { 'content-type': 'text/plain' };
  const answers = [
    await world.request('GET', '/api/webhooks/none'),
    await world.request('PUT', url, { body: {} }),
    await world.request('POST', url, { rawBody: '{}', headers: text }),
    await world.request('POST', url, { rawBody: '{' }),
  ];
  expect(answers.map(({ status, body }) => [status, body])).toEqual([
    [404, form('Not found')],
    [405, form('Method not allowed')],
    [415, form('Invalid Content-Type')],
    [400, form('Invalid input')],
  ]);
  for (const { headers } of answers) expect(headers.get('x-error-code')).toMatch(/^[A-Z_]+$/);
});

test('an endpoint is made once with an Idempotency-Key, and both answers have its secret', async () => {
  const { id: applicationId } = (await world.request('POST', '/api/webhook-applications', { body: { name: 'Customer' } })).body.data;
  const make = (url: string) =>
    world.request('POST', '/api/webhook-endpoints', { headers: { 'idempotency-key': 'made-once' }, body: { applicationId, url } });
  const [first, second] = [await make('https://c.example/'), await make('https://c.example/')];
  expect([first.status, second.status, second.text]).toEqual([201, 201, first.text]);
  expect(first.body.data.secret).toMatch(/^whsec_/);
  expect((await world.request('GET', `/api/webhook-endpoints?applicationId=${applicationId}`)).body.data).toHaveLength(1);
  expect((await make('https://d.example/')).status).toBe(409);
});

test('what fails on our side is 500 Internal error, and reports nothing of it', async () => {
  const { id } = (await world.request('POST', '/api/webhook-applications', { body: { name: 'Customer' } })).body.data;
  const records = `test:{wh:${await world.organizationId('acme')}}:ap`;
  for (const [number, record] of Object.entries(await world.redis.client.hgetall(records)))
    await world.redis.client.hset(records, number, record.replace(/\{.*/, '{ no record'));
  const { status, body } = await world.request('GET', `/api/webhook-applications/${id}`);
  expect([status, body]).toEqual([500, { error: 'Internal error', message: expect.any(String), details: {} }]);
  expect(JSON.stringify(body)).not.toMatch(/no record|JSON|redis/i);
});
