import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { anyPayload } from '../support/any-payload.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let schemaId: string;
beforeAll(async () => {
  world = await startFacadeWorld();
  const made = async (path: string, body: object) => (await world.request('POST', `/api/${path}`, { body })).body;
  await made('filters', { name: 'large', conditions: [{ field: 'amount', operator: 'gt', value: 10 }] });
  await made('transforms', { name: 'total', type: 'javascript', code: '({ payload }) => ({ total: payload.amount * 2 })' });
  const jsonSchema = { type: 'object', required: ['id'], properties: { id: { type: 'string' }, n: { type: 'integer' } } };
  schemaId = (await made('schemas', { name: 'order', jsonSchema })).id;
});
afterAll(() => world.stop());

const post = (path: string, body: object, key?: string) =>
  world.request('POST', `/api/${path}`, key === undefined ? { body } : { body, key });

describe('trying a filter', () => {
  const conditions = [
    { field: 'payload.amount', operator: 'gte', value: 1000 },
    { field: 'headers.X-Kind', operator: 'equals', value: 'order' },
  ];

  test.each([
    ['AND', { amount: 1500 }, { 'X-Kind': 'order' }, true, [true, true]],
    ['AND', { amount: 15 }, { 'x-kind': 'order' }, false, [false, true]],
    ['OR', { amount: 15 }, { 'x-kind': 'order' }, true, [false, true]],
    ['OR', { amount: 15 }, {}, false, [false, false]],
  ])('with %s of conditions on %j with %j returns the result of each', async (logic, payload, headers, matches, each) => {
    const { status, body } = await post('filters/test', { conditions, logic, payload, headers });
    expect(status).toBe(200);
    const judged = conditions.map(({ field, operator }, i) => ({ field, operator, matches: each[i] }));
    expect(body).toEqual({ success: true, matches, conditions: judged, results: judged, logic });
  });

  test.each([
    ['device=7&state=on', true, { state: 'on', all: { device: '7', state: 'on' } }],
    ['state=off&state=on', false, { state: ['off', 'on'], all: { state: ['off', 'on'] } }],
    [undefined, false, { all: {} }],
  ])('trying a filter with the query %j reads it, and so does a transform', async (query, matches, output) => {
    const onQuery = [{ field: 'query.state', operator: 'equals', value: 'on' }];
    expect((await post('filters/test', { conditions: onQuery, query })).body.matches).toBe(matches);
    const code = '{"state": query.state, "all": query}';
    const { body } = await post('transforms/test', { code, query });
    expect(body.output).toEqual(output);
    expect((await post('filters/test', { conditions: onQuery, query: 'q'.repeat(8193) })).status).toBe(400);
  });

  test('trying a filter of a payload that is null: it is no empty object', async () => {
    const onPayload = { conditions: [{ field: 'payload', operator: 'equals', value: null }] };
    expect((await post('filters/test', { ...onPayload, payload: null })).body.matches).toBe(true);
    expect((await post('filters/test', onPayload)).body.matches).toBe(false);
  });

  test('trying a filter with costly patterns is answered within the steps of one filter', async () => {
    const many = Array.from({ length: 50 }, () => ({ field: 'a', operator: 'matches', value: '[ab]{900}' }));
    const { body } = await post('filters/test', { conditions: many, payload: { a: 'ab'.repeat(500) } });
    expect([body.matches, body.conditions[0].matches, body.conditions[49].matches]).toEqual([false, true, false]);
  });

  test('finds a stored one by its slug', async () => {
    expect((await post('filters/test', { filterId: 'large', payload: { amount: 11 } })).body.matches).toBe(true);
    expect((await post('filters/test', { filterId: 'large' })).body.matches).toBe(false);
  });

  test.each([
    [{}, 400, 'VALIDATION_FAILED'],
    [{ filterId: 'large', conditions }, 400, 'VALIDATION_FAILED'],
    [{ filterId: 'large', logic: 'OR' }, 400, 'VALIDATION_FAILED'],
    [{ conditions: [{ field: 'a', operator: 'matches', value: '(' }] }, 400, 'VALIDATION_FAILED'],
    [{ conditions, more: 1 }, 400, 'UNKNOWN_FIELD'],
    [{ filterId: 'nothing-such' }, 404, 'RESOURCE_NOT_FOUND'],
  ])('%j is refused', async (sent, status, code) => {
    const answer = await post('filters/test', sent);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
  });
});

describe('trying a transform', () => {
  test.each([
    [
      'a stored one',
      { transformId: 'total', payload: { amount: 4 } },
      { success: true, output: { total: 8 }, contentType: 'application/json' },
    ],
    [
      'jsonata',
      { code: 'payload.a & headers."x-b"', payload: { a: 'a' }, headers: { 'X-B': 'b' } },
      { success: true, output: 'ab', contentType: 'application/json' },
    ],
    [
      'liquid',
      { type: 'liquid', code: 'From {{ source }}', source: 'shop' },
      { success: true, output: 'From shop', contentType: 'text/plain; charset=utf-8' },
    ],
    [
      'a payload that is null',
      { code: '$type(payload)', payload: null },
      { success: true, output: 'null', contentType: 'application/json' },
    ],
    ['no output', { code: 'payload.nothing' }, { success: true, output: null, contentType: null }],
    [
      'a failure',
      { type: 'javascript', code: 'null.x' },
      { success: false, error: expect.stringMatching(/^line 1, column \d+: TypeError/) },
    ],
    ['code that does not parse', { code: '{"a"' }, { success: false, error: expect.stringMatching(/^line 1/) }],
    [
      'a function that is bound by const',
      { type: 'javascript', code: 'const transform = ({ payload }) => ({ id: payload.id });', payload: { id: 1 } },
      { success: true, output: { id: 1 }, contentType: 'application/json' },
    ],
    [
      'code that has no output',
      { type: 'javascript', code: 'function handler(event) { return event.payload; }' },
      { success: false, error: 'the code neither defines a function "transform" nor has a value' },
    ],
    [
      'a module',
      { type: 'javascript', code: 'export default (event) => event.payload;' },
      { success: false, error: expect.stringMatching(/^line 1, column \d+: SyntaxError/) },
    ],
    ['endless code', { type: 'javascript', code: 'while (true) {}' }, { success: false, error: expect.stringMatching(/^stopped after/) }],
  ])('of %s returns its output or its error', async (_what, sent, expected) => {
    const { status, body } = await post('transforms/test', sent);
    expect([status, body]).toEqual([200, 'output' in expected ? { ...expected, result: expected.output } : expected]);
  });

  test('JSON that a template writes is shown as it would be delivered', async () => {
    const code = '{ "id": 1234567890123456789{{ payload.digit }}, "id": 1.50 }';
    const { text } = await post('transforms/test', { type: 'liquid', code, payload: { digit: 0 } });
    expect(text).toContain('"output":{ "id": 12345678901234567890, "id": 1.50 },"result":{ "id": 12345678901234567890, "id": 1.50 },');
  });

  test('endless code does not hold up the API', async () => {
    // Nothing but its deadline stops it.
    const slow = post('transforms/test', { type: 'jsonata', code: `$match("${'a'.repeat(50)}!", /^(a+)+$/)` });
    let answered = 0;
    const over = slow.then(() => answered);
    for (; answered < 3; answered++) expect((await world.request('GET', '/api/transforms')).status).toBe(200);
    expect(await over).toBe(3);
  });

  test.each([
    [{}, 400, 'VALIDATION_FAILED'],
    [{ transformId: 'total', code: '1' }, 400, 'VALIDATION_FAILED'],
    [{ transformId: 'total', type: 'liquid' }, 400, 'VALIDATION_FAILED'],
    [{ code: '' }, 400, 'VALIDATION_FAILED'],
    [{ transformId: 'nothing-such' }, 404, 'RESOURCE_NOT_FOUND'],
  ])('%j is refused', async (sent, status, code) => {
    const answer = await post('transforms/test', sent);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
  });

  test('trying a transform needs the scope to write', async () => {
    const key = await world.addKey('acme', { role: 'viewer' });
    expect((await post('transforms/test', { code: '1' }, key)).status).toBe(403);
    expect((await post('filters/test', { filterId: 'large' }, key)).status).toBe(200);
  });
});

describe('checking a payload against a schema', () => {
  test('checking a payload against a schema reports every error with its place', async () => {
    expect((await post(`schemas/${schemaId}/validate`, { payload: { id: 'a', n: 1 } })).body).toEqual({ valid: true, errors: [] });
    expect((await post('schemas/order/validate', { payload: { n: 1.5 } })).body).toEqual({
      valid: false,
      errors: [
        { path: '', message: "must have required property 'id'" },
        { path: '/n', message: 'must be integer' },
      ],
    });
    expect((await post('schemas/order/validate', { payload: null })).body).toMatchObject({ valid: false });
  });

  test('amounts of money are multiples of 0.01', async () => {
    await post('schemas', { name: 'price', jsonSchema: { multipleOf: 0.01 } });
    const validate = async (payload: number) => (await post('schemas/price/validate', { payload })).body;
    for (const price of [19.99, 143.48, 1.11, 2.22]) expect(await validate(price)).toEqual({ valid: true, errors: [] });
    expect(await validate(19.999)).toEqual({ valid: false, errors: [{ path: '', message: 'must be multiple of 0.01' }] });
  });

  test('checking a payload against a schema needs a payload, and a schema that exists', async () => {
    expect((await post('schemas/order/validate', {})).body).toMatchObject({ code: 'VALIDATION_FAILED' });
    expect((await post('schemas/nothing-such/validate', { payload: 1 })).status).toBe(404);
  });
});

describe('trying a schema that is not stored', () => {
  const jsonSchema = { type: 'object', required: ['id'], properties: { n: { type: 'integer' } } };

  test.each([
    ['an object', jsonSchema],
    ['JSON text', JSON.stringify(jsonSchema)],
  ])('as %s reports what a payload breaks of it', async (_what, sent) => {
    expect((await post('schemas/test', { jsonSchema: sent, payload: { id: 'a', n: 1 } })).body).toEqual({ valid: true, errors: [] });
    expect((await post('schemas/test', { jsonSchema: sent, payload: { n: 1.5 } })).body).toEqual({
      valid: false,
      errors: [
        { path: '', message: "must have required property 'id'" },
        { path: '/n', message: 'must be integer' },
      ],
    });
    expect((await post('schemas/test', { jsonSchema: sent, payload: null })).body).toMatchObject({ valid: false });
  });

  test.each([
    [{ payload: 1 }, 'VALIDATION_FAILED'],
    [{ jsonSchema }, 'VALIDATION_FAILED'],
    [{ jsonSchema: { type: 'nothing' }, payload: 1 }, 'VALIDATION_FAILED'],
    [{ jsonSchema: '{', payload: 1 }, 'VALIDATION_FAILED'],
    [{ jsonSchema, payload: 1, more: 1 }, 'UNKNOWN_FIELD'],
  ])('with %j is refused', async (sent, code) => {
    expect((await post('schemas/test', sent)).body).toMatchObject({ code });
  });

  test('stores nothing, and needs no more than to read', async () => {
    const total = async () => (await world.request('GET', '/api/schemas')).body.pagination.total;
    const before = await total();
    const key = await world.addKey('acme', { role: 'viewer' });
    expect((await post('schemas/test', { jsonSchema, payload: {} }, key)).status).toBe(200);
    expect(await total()).toBe(before);
  });
});

describe('trying the filters of a subscription', () => {
  const tried = async (body: object) => (await post('webhook-subscriptions/test', body)).body;

  test.each<[string, { rawPayload?: string; [field: string]: unknown }, boolean]>([
    ['event.data.total > 100.0', { payload: { total: 120 } }, true],
    ['event.data.total > 100.0', { payload: { total: 20 } }, false],
    ['event.type == "order.paid"', { eventType: 'order.paid' }, true],
    ['event.type == "posthorn.test"', {}, true],
    ['labels.n == "7" && metadata.by == "test"', { labels: { n: 7 }, metadata: { by: 'test' } }, true],
    ['event.data.id == 9007199254740992', { rawPayload: '{"id":9007199254740993}' }, false],
    ['event.data.id == 9007199254740993', { rawPayload: '{"id":9007199254740993}' }, true],
  ])('by %s of %j is %s', async (filterExpression, { rawPayload, ...sample }, matches) => {
    const text = JSON.stringify({ filterExpression, ...sample });
    const rawBody = Buffer.from(rawPayload === undefined ? text : `${text.slice(0, -1)},"payload":${rawPayload}}`);
    const { status, body } = await world.request('POST', '/api/webhook-subscriptions/test', { rawBody });
    expect([status, body]).toEqual([200, { success: true, matches, error: null, labels: [] }]);
  });

  test('says what labels the event lacks, which decide before the expression', async () => {
    const labelFilters = { region: ['eu', 'us'], tier: 'gold' };
    const unmet = { label: 'region', expected: ['eu', 'us'], actual: 'asia' };
    expect(await tried({ labelFilters, filterExpression: 'event.data.gone', labels: { region: 'asia', tier: 'gold' } })).toEqual({
      success: true,
      matches: false,
      error: null,
      labels: [unmet],
    });
    expect(await tried({ labelFilters, labelFilterMode: 'any', labels: { region: 'asia', tier: 'gold' } })).toMatchObject({
      matches: true,
    });
    expect(await tried({ labels: { region: 'asia' } })).toMatchObject({ matches: true, labels: [] });
  });

  test('by an expression that fails is no match, and says why', async () => {
    expect(await tried({ filterExpression: 'event.data.total > 1.0', payload: {} })).toEqual({
      success: true,
      matches: false,
      error: expect.stringContaining('total'),
      labels: [],
    });
    const slow = 'event.data.a.exists(i, event.data.b.contains("y"))';
    const payload = { a: Array.from({ length: 1000 }, () => 1), b: 'x'.repeat(50_000) };
    expect(await tried({ filterExpression: slow, payload })).toMatchObject({ matches: false, error: expect.stringContaining('too long') });
  });

  test.each([
    [{ filterExpression: 'event.type = "a"' }, /^line 1, column 12: /],
    [{ filterExpression: 'x'.repeat(1001) }, /1000/],
  ])('by %j is 400 with the place', async (sent, reason) => {
    const { status, body } = await post('webhook-subscriptions/test', sent);
    expect([status, body.details]).toEqual([400, { filterExpression: [expect.stringMatching(reason)] }]);
  });

  test('needs no more than to read', async () => {
    const key = await world.addKey('acme', { role: 'viewer' });
    expect((await post('webhook-subscriptions/test', { filterExpression: 'true' }, key)).status).toBe(200);
  });
});

test.each<[string, object, object]>([
  ['filters/test', { conditions: [{ field: '__proto__.a', operator: 'equals', value: 1 }] }, { matches: true }],
  ['transforms/test', { type: 'javascript', code: '({ payload }) => Object.keys(payload)' }, { output: ['__proto__', 'deep'] }],
  ['schemas/order/validate', {}, { errors: [{ path: '', message: "must have required property 'id'" }] }],
  ['schemas/test', { jsonSchema: { required: ['id'] } }, { errors: [{ path: '', message: "must have required property 'id'" }] }],
  ['webhook-subscriptions/test', { filterExpression: '!has(event.data.id)' }, { matches: true }],
])('%s takes any payload that an event may have', async (path, body, expected) => {
  expect(await post(path, { ...body, payload: JSON.parse(anyPayload()) })).toMatchObject({ status: 200, body: expected });
});
