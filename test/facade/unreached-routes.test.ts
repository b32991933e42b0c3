import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { newTimedId } from '../../src/core/ids.ts';
import { RedisIntake } from '../../src/data/intake/intake.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { hashFields } from '../../src/data/shard/hash-fields.ts';
import { createIngestHandler } from '../../src/ingest/handler.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import type { ApplyObject } from '../../src/store/store.ts';
import { testKeyring } from '../support/controllers.ts';
import { eventually } from '../support/eventually.ts';
import { lenientClock } from '../support/lenient-clock.ts';
import { lenientSandbox } from '../support/lenient-sandbox.ts';
import { silentLogger } from '../support/logger.ts';
import { newEvent } from '../support/new-event.ts';
import { patientServer } from '../support/patient-server.ts';
import { settleAll, takeFrom } from '../support/queue-worker.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let org: string;
let origin: string;
let stop: () => void;
const secret = 'canary-credential-of-a-sender-0123456789';

beforeAll(async () => {
  world = await startFacadeWorld();
  org = await world.organizationId('acme');
  const sandbox = lenientSandbox();
  const handler = createIngestHandler({
    registry: world.registry,
    acceptor: world.acceptor,
    intake: new RedisIntake({ redis: world.redis.client, prefix: 'test:', clock: systemClock }),
    signatureFailures: { note: () => {} },
    sandbox,
    keyring: testKeyring,
    clock: lenientClock,
    logger: silentLogger,
    metrics: new Registry(),
  });
  const server = patientServer((request, response) => void handler(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  stop = () => {
    server.close();
    sandbox.close();
  };
});
afterAll(async () => {
  stop();
  await world.stop();
});

interface Condition {
  field: string;
  operator: string;
  value?: unknown;
}

/** A source with a route for each of these filters, and how to send to it. */
async function sourceWith(routes: ({ logic?: 'AND' | 'OR'; conditions?: Condition[] } & Record<string, unknown>)[]) {
  const source = await world.create('sources', {});
  const ids: string[] = [];
  for (const [i, { logic, conditions, ...rest }] of routes.entries()) {
    const destination = (await world.create('destinations', { url: 'https://hooks.example.com/in' })).id;
    const route = { sourceId: source.id, destinationIds: [destination], priority: 1000 - i, ...rest };
    const inline = conditions === undefined ? {} : { filterConditions: conditions, ...(logic !== undefined && { filterLogic: logic }) };
    ids.push((await world.create('routes', { ...route, ...inline })).id);
  }
  const send = async (body: string, { headers = {}, query = '' }: { headers?: Record<string, string>; query?: string } = {}) => {
    const answer = await fetch(`${origin}/ingest/acme/${source.slug}${query}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
    });
    expect(answer.status).toBe(200);
    return ((await answer.json()) as { eventId: string }).eventId;
  };
  return { source, ids, send };
}

const read = async (eventId: string) => (await world.request('GET', `/api/events/${eventId}`)).body;

const payload = JSON.stringify({
  amount: 12,
  exact: 0,
  kind: 'order.paid',
  note: null,
  list: [1, 'a', { b: true }],
  object: { deep: { a: 'x'.repeat(500) } },
  long: 'y'.repeat(500),
  'a.b': true,
}).replace('"exact":0', '"exact":12345678901234567890.10');

const falseConditions: [
  what: string,
  condition: Condition,
  actual: unknown,
  options?: { headers?: Record<string, string>; query?: string },
][] = [
  ['a number', { field: 'payload.amount', operator: 'gt', value: 100 }, 12],
  ['a number of many digits', { field: 'exact', operator: 'lt', value: 1 }, '12345678901234567890.10'],
  ['a text', { field: 'kind', operator: 'equals', value: 'order.created' }, 'order.paid'],
  ['a list of values', { field: 'kind', operator: 'in', value: ['a', 'b'] }, 'order.paid'],
  ['null', { field: 'note', operator: 'equals', value: 'x' }, null],
  ['a list', { field: 'list', operator: 'contains', value: 'z' }, '[1,"a",{"b":true}]'],
  ['a list element', { field: 'list[-1].b', operator: 'equals', value: false }, true],
  ['a name with a dot', { field: "payload['a.b']", operator: 'equals', value: false }, true],
  ['a long text', { field: 'long', operator: 'starts_with', value: 'x' }, `${'y'.repeat(199)}…`],
  ['a large object', { field: 'object', operator: 'equals', value: {} }, expect.stringMatching(/^\{"deep":\{"a":"x+…$/)],
  ['a field that is not there', { field: 'none.such', operator: 'exists' }, undefined],
  ['a header', { field: 'headers.X-Kind', operator: 'equals', value: 'b' }, 'a', { headers: { 'x-kind': 'a' } }],
  ['a parameter', { field: 'query.device', operator: 'equals', value: '8' }, '7', { query: '?device=7' }],
  [
    'a credential in a header',
    { field: 'headers.authorization', operator: 'equals', value: 'Bearer other' },
    '••••',
    { headers: { authorization: secret } },
  ],
  ['a credential with a name of its own', { field: "headers['x-api-key']", operator: 'exists' }, '••••'],
  ['a credential in the query', { field: 'query.token', operator: 'equals', value: 'other' }, '••••', { query: `?token=${secret}` }],
  ['a header of the connection', { field: 'headers.host', operator: 'equals', value: 'other.example' }, '••••'],
];

test('a value of many lists within each other is reported by its beginning', async () => {
  const { send } = await sourceWith([{ conditions: [{ field: 'nested', operator: 'equals', value: 1 }] }]);
  const record = await read(await send(`{"nested":${'['.repeat(20_000)}${']'.repeat(20_000)}}`));
  expect(record.unreached.routes[0].conditions).toEqual([
    { index: 0, field: 'nested', operator: 'equals', expected: 1, actual: expect.stringMatching(/^\[+…\]+$/) },
  ]);
});

test('the condition that was false is reported with the expected and the actual value, without credentials', async () => {
  const { ids, send } = await sourceWith(
    falseConditions.map(([, condition]) => ({ conditions: [{ field: 'amount', operator: 'equals', value: 12 }, condition] })),
  );
  for (const [at, [what, { field, operator, value }, actual, options]] of falseConditions.entries()) {
    const record = await read(await send(payload, options));
    const { routeId, reason, conditions, changedSince, error } = record.unreached.routes[at];
    expect([what, routeId, reason, changedSince, error]).toEqual([what, ids[at], 'condition_false', false, null]);
    const [only, ...others] = conditions;
    expect([what, others, only.index, only.field, only.operator]).toEqual([what, [], 1, field, operator]);
    expect([what, only.actual]).toEqual([what, actual]);
    if (actual !== '••••') expect([what, only.expected]).toEqual([what, typeof value === 'object' ? JSON.stringify(value) : value]);
    else expect([what, String(only.expected ?? '••••')]).toEqual([what, expect.stringMatching(/^••••/)]);
    expect(JSON.stringify(record)).not.toContain(secret);
    expect(record.unreached.byReason).toEqual({ condition_false: record.unreached.total });
    expect(record.unreached.routes.map(({ deliveryId }: { deliveryId: string }) => deliveryId)).toEqual(
      record.deliveries.filter(({ status }: { status: string }) => status === 'filtered').map(({ id }: { id: string }) => id),
    );
  }
});

test('all conditions of a filter of which one has to be met are shown', async () => {
  const conditions = ['a', 'b'].map((value) => ({ field: 'kind', operator: 'equals', value }));
  const { ids, send } = await sourceWith([{ logic: 'OR', conditions }]);
  const { unreached } = await read(await send(payload));
  const told = ['a', 'b'].map((expected, index) => ({ index, field: 'kind', operator: 'equals', expected, actual: 'order.paid' }));
  expect(unreached).toMatchObject({ total: 1, routes: [{ routeId: ids[0], reason: 'no_condition_met', conditions: told }] });
});

test.each(['a filter of its own', 'a Filter that it refers to'])(
  'nothing is reported about a route with %s once that has changed, but which condition it was',
  async (whose) => {
    const before = { logic: 'AND', conditions: [{ field: 'kind', operator: 'equals', value: 'a' }] };
    const after = { logic: 'AND', conditions: [{ field: 'kind', operator: 'equals', value: 'b' }] };
    const filter = whose.startsWith('a Filter') ? await world.create('filters', before) : null;
    const { ids, send } = await sourceWith([filter === null ? { conditions: before.conditions } : { filterId: filter.id }]);
    const eventId = await send(payload);
    const [route = ''] = ids;
    const one = async () => (await read(eventId)).unreached.routes[0];
    expect(await one()).toMatchObject({ changedSince: false, conditions: [{ index: 0, expected: 'a', actual: 'order.paid' }] });
    const change = (to: typeof before) =>
      filter === null
        ? world.request('PATCH', `/api/routes/${route}`, { body: { filterConditions: to.conditions } })
        : world.request('PATCH', `/api/filters/${filter.id}`, { body: to });
    expect((await change(after)).status).toBe(200);
    const changed = { routeId: route, reason: 'condition_false', changedSince: true, conditions: [{ index: 0 }] };
    await eventually(async () => expect(await one()).toEqual({ ...changed, deliveryId: expect.any(String), error: null }));
    expect((await change(before)).status).toBe(200);
    await eventually(async () => expect(await one()).toMatchObject({ changedSince: false, conditions: [{ expected: 'a' }] }));
    expect((await world.request('DELETE', `/api/routes/${route}`)).status).toBe(204);
    await eventually(async () => expect(await one()).toMatchObject({ changedSince: true, conditions: [{ index: 0 }] }));
  },
);

const passesA = { logic: 'AND', conditions: [{ field: 'kind', operator: 'equals', value: 'a' }] };
const byKind = { name: 'by-kind', namespace: 'acme' };
const applyFilter = (spec: object) =>
  world.store.apply({ kind: 'Filter', metadata: byKind, spec } as ApplyObject, { manager: 'posthorn-api', force: true });

test.each([
  ['FilterNotFound', 'Filter by-kind does not exist', () => world.store.delete('Filter', byKind)],
  ['FilterNotAccepted', 'Filter by-kind: ', () => applyFilter({ conditions: [{ field: 'kind', operator: 'matches', value: '(' }] })],
])(
  'a route whose Filter is withdrawn (%s) keeps its conditions, and the route and the event report it until the Filter is back',
  async (reason, why, withdraw) => {
    const filter = await world.create('filters', { slug: byKind.name, ...passesA });
    const { ids, send } = await sourceWith([{ filterId: filter.id }]);
    const [id = ''] = ids;
    const { slug: name } = (await world.request('GET', `/api/routes/${id}`)).body;
    const resolvedRefs = async () => {
      const { status } = await world.store.get('Route', { name, namespace: 'acme' });
      return status?.conditions?.find(({ type }) => type === 'ResolvedRefs');
    };
    const told = async (eventId: string) => (await read(eventId)).unreached.routes[0];
    expect(await told(await send(payload))).toMatchObject({ reason: 'condition_false', error: null });
    await withdraw();
    await eventually(async () =>
      expect(await resolvedRefs()).toMatchObject({ status: 'False', reason, message: expect.stringContaining(why) }),
    );
    const eventId = await send(payload);
    const kept = {
      reason: 'condition_false',
      error: expect.stringContaining(`the route keeps the filter that was in force before: ${why}`),
      conditions: [{ index: 0, expected: 'a', actual: 'order.paid' }],
      changedSince: false,
    };
    await eventually(async () => expect(await told(eventId)).toMatchObject(kept));
    const { story, advice } = (await world.request('GET', `/api/explain/${eventId}`)).body;
    expect(JSON.stringify(story)).toContain(why);
    expect(advice).toContainEqual(expect.objectContaining({ command: expect.stringContaining(`/explain/${id}`) }));
    await applyFilter(passesA);
    await eventually(async () => expect(await told(eventId)).toMatchObject({ error: null }));
    expect(await resolvedRefs()).toMatchObject({ status: 'True' });
    for (const path of [`routes/${id}`, `filters/${byKind.name}`]) expect((await world.request('DELETE', `/api/${path}`)).status).toBe(204);
  },
);

test('a route whose patterns were not tried, or whose schema the event breaks, has the error', async () => {
  const schema = await world.create('schemas', { jsonSchema: { type: 'object', required: ['id'] } });
  const pattern = { field: 'text', operator: 'matches', value: `(${'a?'.repeat(200)}){1,4}x` };
  const { ids, send } = await sourceWith([
    { conditions: [pattern] },
    { conditions: [{ field: 'kind', operator: 'exists' }], schemaId: schema.id },
  ]);
  const { unreached } = await read(await send(JSON.stringify({ text: 'a'.repeat(200_000) })));
  expect(unreached).toMatchObject({
    total: 2,
    byReason: { schema_failed: 1, filter_error: 1 },
    routes: [
      { routeId: ids[1], reason: 'schema_failed', error: expect.stringContaining('id'), conditions: [] },
      {
        routeId: ids[0],
        reason: 'filter_error',
        error: expect.stringContaining('was not tried'),
        conditions: [{ index: 0, field: 'text' }],
      },
    ],
  });
});

test('what a transform has left out or failed on is reported', async () => {
  const queue = new RedisDeliveryQueue({ redis: world.redis.client, prefix: 'test:' });
  await queue.refreshShard('w1', 1000);
  for (const [status, told] of [
    ['filtered', 'transform_filtered'],
    ['transform_failed', 'transform_failed'],
  ] as const) {
    const event = newEvent({ org, destinations: [`dst_${status}`] });
    await world.acceptor.accept(event);
    const job = await eventually(async () => {
      const jobs = await takeFrom(queue, 'w1', 64);
      const own = jobs.filter(({ messageKey }) => event.targets[0]?.messageId.endsWith(messageKey) === true);
      expect(own).toHaveLength(1);
      return own;
    });
    await settleAll(queue, 'w1', job, { type: 'unsent', status, reason: `by ${status}`, tookMs: 1 });
    const only = { routeId: 'rte_a', reason: told, error: `by ${status}`, conditions: [], changedSince: false };
    expect((await read(event.id)).unreached).toMatchObject({ total: 1, byReason: { [told]: 1 }, routes: [only] });
  }
});

test.each([
  ['r', 'route_disabled'],
  ['d', 'destination_disabled'],
])('a delivery that waits without an attempt is reported with what it waits for (%s: %s)', async (pausedFor, reason) => {
  const event = newEvent({ org, destinations: [`dst_${reason}`] });
  await world.acceptor.accept(event);
  const number = await world.redis.client.hget(`test:{s0}:tn:${org}`, `rte_a dst_${reason}`);
  await world.redis.client.hset(`test:{s0}:t:${number}`, {
    [hashFields.target.pausedSinceMs]: Date.now(),
    [hashFields.target.pausedFor]: pausedFor,
  });
  const { unreached } = await read(event.id);
  expect(unreached).toMatchObject({ total: 1, byReason: { [reason]: 1 }, routes: [{ routeId: 'rte_a', reason, conditions: [] }] });
});

test('the first hundred of 2,000 routes are shown, and how many there are for each reason', async () => {
  const event = newEvent({ org, destinations: [] });
  const filtered = Array.from({ length: 2000 }, (_, i) => ({
    routeId: `rte_${i}`,
    why: { rule: 'x', reason: 'condition', condition: 3 } as const,
  }));
  const invalid = { messageId: newTimedId('msg_', 0, event.receivedAtMs), routeId: 'rte_bad', brokenSchema: 'no id' };
  await world.acceptor.accept({ ...event, filtered, invalid: [invalid] });
  const { unreached } = await read(event.id);
  expect([unreached.total, unreached.byReason, unreached.routes.length]).toEqual([2001, { schema_failed: 1, condition_false: 2000 }, 100]);
  expect(unreached.routes[1]).toEqual({
    routeId: 'rte_0',
    deliveryId: expect.any(String),
    reason: 'condition_false',
    error: null,
    conditions: [{ index: 3 }],
    changedSince: true,
  });
  expect(unreached.routes.at(-1).routeId).toBe('rte_98');
});

test('what an earlier release has stored of a filtered route is shown without a condition', async () => {
  const event = newEvent({ org, destinations: [], invalidRoutes: { rte_old: 'x' } });
  await world.acceptor.accept(event);
  const key = `test:{s0}:m:${event.invalid[0]?.messageId.slice('msg_00'.length)}`;
  await world.redis.client.hset(key, hashFields.message.status, 'f');
  await world.redis.client.hdel(key, hashFields.message.unsentReason);
  const record = await read(event.id);
  expect(record.deliveries).toMatchObject([{ routeId: 'rte_old', status: 'filtered', lastErrorMessage: null }]);
  expect(record.unreached).toMatchObject({
    byReason: { filtered: 1 },
    routes: [{ routeId: 'rte_old', reason: 'filtered', conditions: [] }],
  });
});

test('an event that all routes have got has none that it did not reach', async () => {
  const { send } = await sourceWith([{ conditions: [{ field: 'kind', operator: 'exists' }] }]);
  expect((await read(await send(payload))).unreached).toEqual({ total: 0, byReason: {}, routes: [] });
});
