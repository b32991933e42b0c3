import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { celEvent, compileCelFilter } from '../../src/core/cel-filter.ts';
import { readFieldMapping } from '../../src/core/field-mapping.ts';
import { compileFilter } from '../../src/core/filter-evaluation.ts';
import { inOnePiece } from '../../src/core/in-one-piece.ts';
import { readJsonPath } from '../../src/core/json-path.ts';
import { parseJson } from '../../src/core/read-json.ts';
import type { FilterOperator } from '../../src/core/records.ts';
import { webhookOrganization } from '../../src/core/webhook.ts';
import { RedisMessageReader } from '../../src/data/history/message-reader.ts';
import { javascriptEngine } from '../../src/sandbox/engines/javascript.ts';
import { jsonataEngine } from '../../src/sandbox/engines/jsonata.ts';
import { liquidEngine } from '../../src/sandbox/engines/liquid.ts';
import { eventually } from '../support/eventually.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let numbers: readonly string[];
beforeAll(async () => {
  world = await startFacadeWorld();
  numbers = [...forms, ...fc.sample(number, { numRuns: 100, seed: 20_261_122 })];
});
afterAll(() => world?.stop());

const forms = [
  ...[
    '0',
    '-0',
    '0.0',
    '-0.0',
    '1',
    '-1',
    '1.0',
    '1.50',
    '19.90',
    '19.9',
    '100.00',
    '0.1',
    '0.10',
    '1e3',
    '1E3',
    '1e+3',
    '1000',
    '1E-2',
    '1e21',
    '1e-7',
  ],
  ...[
    '9007199254740991',
    '9007199254740992',
    '9007199254740993',
    '9007199254740993.0',
    '9007199254740993.5',
    '-9007199254740993',
    '90071992547409930e-1',
  ],
  ...['7615917337495251231', '1152921506151679042', '18446744073709551615', '18446744073709551616', '123456789012345678901234567890'],
  ...[
    '0.1000000000000000055',
    '0.30000000000000004',
    '3.14159265358979323846264338327950288',
    '123456789.123456789123456789',
    '0.0000001',
    '0.00000010',
  ],
  ...[
    '1E400',
    '1e401',
    '10e399',
    '-1E400',
    '1e-400',
    '-1e-400',
    '2e-400',
    '1.7976931348623157e308',
    '1.7976931348623159e308',
    '5e-324',
    '2e-324',
  ],
];

const digits = (maxLength: number) => fc.stringMatching(new RegExp(`^[0-9]{1,${maxLength}}$`));
const number = fc
  .tuple(
    fc.constantFrom('', '-'),
    digits(30).map((text) => text.replace(/^0+(?=.)/, '')),
    fc.option(fc.tuple(digits(25), fc.constantFrom('', '0', '00')), { nil: null }),
    fc.option(fc.tuple(fc.constantFrom('e', 'E'), fc.constantFrom('', '+', '-'), fc.integer({ min: 0, max: 420 })), { nil: null, freq: 3 }),
  )
  .map(
    ([sign, whole, fraction, exponent]) => `${sign}${whole}${fraction === null ? '' : `.${fraction.join('')}`}${exponent?.join('') ?? ''}`,
  );

/** Reads JSON texts as Python does, with decimals for what is no integer. */
const reading = `
import decimal, json, sys
loads = lambda text: json.loads(text, parse_float=decimal.Decimal, parse_int=int)
order = lambda one, other: (one > other) - (one < other)
print(json.dumps([order(loads(one), loads(other)) for one, other in json.load(sys.stdin)]))
`;

/** Order of each two JSON texts of numbers; of other texts 0 when they are equal. */
function pythonOrders(pairs: readonly (readonly [string, string])[]): number[] {
  const { status, stdout, stderr } = spawnSync('python3', ['-c', reading], { input: JSON.stringify(pairs), encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

/** The pairs whose texts do not have the same value. */
function changed(pairs: readonly (readonly [string, string])[]): unknown {
  const orders = pythonOrders(pairs);
  return pairs.filter((_, i) => orders[i] !== 0);
}

/** Each number with those that are near it, and with others. */
function neighbours(): [string, string][] {
  const near = (text: string): string[] => [
    text,
    text.replace(/\d(?=\D*$)/, (digit) => String((Number(digit) + 1) % 10)),
    `${Number(text)}`,
  ];
  return numbers.flatMap((text, i) =>
    [...near(text), numbers[(i * 7 + 3) % numbers.length] ?? text]
      .filter((other) => /^-?\d/.test(other))
      .flatMap((other): [string, string][] => [
        [text, other],
        [other, text],
      ]),
  );
}

test('Filters compare numbers of every form as Python does', () => {
  const pairs = neighbours();
  const orders = pythonOrders(pairs);
  const isMet = (operator: FilterOperator, actual: string, value: unknown): boolean =>
    inOnePiece(
      compileFilter({ logic: 'AND', conditions: [{ field: 'n', operator, value }] }).inPieces({
        headers: {},
        query: {},
        payload: parseJson(`{"n":${actual}}`),
      }),
    ).isMet;
  const judged = (actual: string, value: unknown): number => {
    const [less, equal, greater] = (['lt', 'equals', 'gt'] as const).map((operator) => isMet(operator, actual, value));
    if (Number(less) + Number(equal) + Number(greater) !== 1) throw new Error(`${actual} ${JSON.stringify(value)}`);
    return less ? -1 : greater ? 1 : 0;
  };
  const wrong = pairs.filter(([actual, value], i) => judged(actual, parseJson(value)) !== orders[i] || judged(actual, value) !== orders[i]);
  expect(wrong).toEqual([]);
  for (const text of numbers) {
    expect([text, isMet('starts_with', text, text), isMet('ends_with', text, text.slice(-2))]).toEqual([text, true, true]);
    expect(isMet('in', text, ['a', parseJson(text)])).toBe(true);
  }
});

test('Filters of a JSONPath compare numbers of every form as Python does', () => {
  const pairs = neighbours();
  const orders = pythonOrders(pairs);
  const found = (filter: string, text: string): boolean => readJsonPath(`$[?${filter}]`).query?.(parseJson(text)).length === 1;
  const judged = pairs.map(([one, other]) =>
    ['<', '==', '>'].map((operator) => [
      found(`@ ${operator} ${other}`, `[${one}]`),
      found(`@.a ${operator} @.b`, `[{"a":${one},"b":${other}}]`),
    ]),
  );
  expect(judged).toEqual(orders.map((order) => [order < 0, order === 0, order > 0].map((isMet) => [isMet, isMet])));
});

test('CEL compares integers of any size as Python does', () => {
  const isInteger = (text: string): boolean => /^-?\d+$/.test(text);
  const pairs = neighbours().filter(([one, other]) => isInteger(one) && isInteger(other));
  const orders = pythonOrders(pairs);
  const [less, equal, greater] = ['<', '==', '>'].map((operator) => compileCelFilter(`event.data.a ${operator} event.data.b`));
  const judged = pairs.map(([a, b]) => {
    const event = celEvent({ type: 't', data: parseJson(`{"a":${a},"b":${b}}`), labels: {}, metadata: {} });
    return [less?.(event).isMatch, equal?.(event).isMatch, greater?.(event).isMatch];
  });
  expect(judged).toEqual(orders.map((order) => [order < 0, order === 0, order > 0]));
  expect(pairs.length).toBeGreaterThan(50);
});

test('A transform of any engine that hands a number on does not change its value', async () => {
  const input = (text: string) => ({ organization: 'org_a', event: '{"id":"evt_a"}', payload: `{"n":${text},"l":[{"n":${text}}]}` });
  const pairs: [string, string][] = [];
  for (const text of numbers)
    for (const [engine, code] of [
      [javascriptEngine, '({ payload: event.payload })'],
      [jsonataEngine, '{"payload": payload}'],
      [liquidEngine, '{"payload": {"n":{{payload.n}},"l":{{ payload.l | json }}}}'],
    ] as const) {
      const warnings: string[] = [];
      const output = await engine.run({ ...input(text), code, warn: (warning) => warnings.push(warning) });
      pairs.push([`{"payload":${input(text).payload}}`, output ?? '']);
      expect([text, warnings]).toEqual([text, []]);
    }
  const strip = (json: string): string => json.replace(/^\{"payload":(?: )?\{"n":(.*?),"l".*$/, '$1');
  expect(changed(pairs.map(([one, other]) => [strip(one), strip(other)]))).toEqual([]);
  const inList = (json: string): string => json.replace(/^.*\[\{"n":(.*?)\}\].*$/, '$1');
  expect(changed(pairs.map(([one, other]) => [inList(one), inList(other)]))).toEqual([]);
});

test('Columns of a field mapping have the digits of numbers', () => {
  const types = ['string', 'number', 'json'] as const;
  const { mapping } = readFieldMapping(types.map((type) => ({ source: '$.payload.n', target: type, type })));
  const columns = numbers.map((text) => Object.fromEntries(mapping?.({ payload: parseJson(`{"n":${text}}`) }) ?? []));
  expect(columns.map((each) => each['string'])).toEqual(numbers);
  const texts = (type: string): [string, string][] => numbers.map((text, i) => [text, JSON.stringify(columns[i]?.[type])]);
  expect(changed([...texts('number'), ...texts('json')])).toEqual([]);
});

test('A sent event, its labels and its metadata, a filter and an application keep numbers as they are written', async () => {
  const list = `[${numbers.join(',')}]`;
  const members = `{${numbers.slice(0, 50).map((text, i) => `"n${i}":${text}`)}}`;
  const { body } = await world.request('POST', '/api/event-types', { body: { name: 'numbers.sent' } });
  await eventually(async () => expect(await world.registry.getOfAny('eventType', body.data.id)).not.toBeNull());
  const sent = await world.request('POST', '/api/send-event', {
    rawBody: `{"eventType":"numbers.sent","payload":${list},"labels":${members},"metadata":{"list":${list}}}`,
  });
  expect([sent.status, sent.text]).toEqual([201, expect.any(String)]);
  const { eventId } = sent.body.data;
  const org = webhookOrganization(await world.organizationId('acme'));
  const event = await new RedisMessageReader({ redis: world.redis.client, prefix: 'test:' }).event(org, eventId);
  expect(event?.payload?.toString()).toBe(list);
  expect(event?.webhook?.labels).toEqual(Object.fromEntries(numbers.slice(0, 50).map((text, i) => [`n${i}`, text])));
  expect(JSON.stringify(event?.webhook?.metadata)).toBe(`{"list":${list}}`);

  const values = numbers.slice(0, 100);
  const made = await world.request('POST', '/api/filters', {
    rawBody: `{"name":"numbers","logic":"AND","conditions":[{"field":"payload.n","operator":"in","value":[${values.join(',')}]}]}`,
  });
  expect([made.status, made.text]).toEqual([201, expect.stringContaining(`"value":[${values.join(',')}]`)]);
  const read = await world.request('GET', `/api/filters/${made.body.id}`);
  expect(read.text).toContain(`"value":[${values.join(',')}]`);
  const changedFilter = await world.request('PATCH', `/api/filters/${made.body.id}`, {
    rawBody: '{"conditions":[{"field":"payload.n","operator":"equals","value":9007199254740993}]}',
  });
  expect([changedFilter.status, changedFilter.text]).toEqual([200, expect.stringContaining('"value":9007199254740993}')]);

  const application = await world.request('POST', '/api/webhook-applications', {
    rawBody: `{"name":"Customer","metadata":{"list":${list}},"rateLimitPerSecond":5e1}`,
  });
  expect([application.status, application.text]).toEqual([201, expect.stringContaining(`"metadata":{"list":${list}}`)]);
  expect(application.body.data.rateLimitPerSecond).toBe(50);
});

test('A JSON Schema that is sent as an object checks all digits of what is sent', async () => {
  const jsonSchema = '{"properties":{"id":{"const":9007199254740993}}}';
  const made = await world.request('POST', '/api/schemas', { rawBody: `{"name":"numbers","jsonSchema":${jsonSchema}}` });
  expect([made.status, made.text]).toEqual([201, expect.stringContaining(jsonSchema)]);
  const validity = async (id: string) =>
    (await world.request('POST', `/api/schemas/${made.body.id}/validate`, { rawBody: `{"payload":{"id":${id}}}` })).body.valid;
  expect([await validity('9007199254740993'), await validity('9007199254740992')]).toEqual([true, false]);

  const type = await world.request('POST', '/api/event-types', {
    rawBody: `{"name":"numbers.checked","schema":${JSON.stringify(jsonSchema)}}`,
  });
  expect(type.status).toBe(201);
  await eventually(async () => expect(await world.registry.getOfAny('eventType', type.body.data.id)).not.toBeNull());
  const send = async (id: string) =>
    (await world.request('POST', '/api/send-event', { rawBody: `{"eventType":"numbers.checked","payload":{"id":${id}}}` })).status;
  expect([await send('9007199254740993'), await send('9007199254740992')]).toEqual([201, 400]);
});

test.each([
  ['small-body', ''],
  ['large-body', 'x'.repeat(100_000)],
])('An Idempotency-Key is another request when a number of many digits is another one: %s', async (what, padding) => {
  const send = (id: string) =>
    world.request('POST', '/api/transforms/test', {
      headers: { 'idempotency-key': what },
      rawBody: `{"code":"payload.id","payload":{"id":${id},"more":"${padding}"}}`,
    });
  const [first, again, other] = [await send('9007199254740993'), await send('9007199254740993'), await send('9007199254740992')];
  expect([first.status, first.text]).toEqual([200, expect.stringContaining('"output":9007199254740993')]);
  expect([again.status, again.text]).toEqual([200, first.text]);
  expect(other.status).toBe(409);
});

test.each([
  ['5e0', 201, /"rateLimitPerSecond":5,/],
  ['5.0', 201, /"rateLimitPerSecond":5,/],
  ['5.50', 400, /must be a whole number/],
  ['9007199254740993', 400, /must be at most 1000000/],
  ['1E400', 400, /rateLimitPerSecond/],
])('A field that has a number takes %s as a double', async (text, status, message) => {
  const answer = await world.request('POST', '/api/webhook-applications', {
    rawBody: `{"name":"Customer","metadata":{"id":9007199254740993},"rateLimitPerSecond":${text}}`,
  });
  expect([answer.status, answer.text]).toEqual([status, expect.stringMatching(message)]);
  if (status === 201) expect(answer.text).toContain('"metadata":{"id":9007199254740993}');
});
