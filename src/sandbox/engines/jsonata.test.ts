import { describe, expect, test } from '@jest/globals';
import { jsonataEngine } from './jsonata.ts';

const run = async (code: string, payload: unknown, more: Record<string, unknown> = {}) =>
  await jsonataEngine.run({
    organization: 'org_a',
    code,
    event: JSON.stringify({ id: 'evt_1', headers: {}, ...more }),
    payload: typeof payload === 'string' ? payload : JSON.stringify(payload),
  });

test.each(['$sum', 'function($n) { $n }', '$map(?, $string)'])('an output that is a function is an error: %s', async (code) => {
  await expect(run(code, {})).rejects.toThrow('the output is a function, which JSON does not have');
});

describe('a member by which JSONata knows values of its own', () => {
  test.each<[string, string, unknown]>([
    ['_jsonata_lambda', 'payload', { a: { _jsonata_lambda: true, seen: 1 }, b: 2 }],
    ['_jsonata_lambda', '$string(payload)', { a: [[{ _jsonata_lambda: true }]] }],
    ['_jsonata_lambda', 'payload.a', '{"a": {"\\u005fjsonata_lambda": true}}'],
    ['_jsonata_lambda', '$map([1], function($v) { $lookup($$.payload, "a") })', { a: { _jsonata_lambda: true, thunk: true, body: {} } }],
    ['_jsonata_function', 'payload.a.b', { a: { _jsonata_function: true, b: 1 } }],
    ['tupleStream', 'payload{"a": $sum(b)}', { tupleStream: true, '@': {}, sum: 1, b: [1, 2] }],
    ['tupleStream', 'payload[b]', { tupleStream: 1, b: true }],
    ['outerWrapper', 'payload.$', { outerWrapper: 'x', 0: 'replaced' }],
    ['outerWrapper', 'payload.*', [{ outerWrapper: {}, a: 1 }]],
  ])('%s is refused whatever the expression: %s', async (name, code, payload) => {
    await expect(run(code, payload)).rejects.toThrow(`The event has a member ${name}, which JSONata reserves for itself`);
  });

  test.each(['_jsonata_lambda', '_jsonata_function', 'tupleStream', 'outerWrapper'])('%s is refused in metadata', async (name) => {
    await expect(run('metadata', {}, { metadata: { a: { [name]: true } } })).rejects.toThrow(`The event has a member ${name}`);
  });
});

describe('a payload is seen as it was sent', () => {
  const texts = [
    ...[
      'sequence',
      'keepSingleton',
      'cons',
      'thunk',
      'keepArray',
      'arity',
      'implementation',
      'signature',
      'next',
      'then',
      'length',
      'push',
      'apply',
      'groups',
      '@',
    ].map((name) => `{"a":{"${name}":true,"b":1},"c":[{"${name}":[1]}]}`),
    '{"a":{"_jsonata_lambda":"x","b":1}}',
    '{"a":{"_jsonata_function":false,"b":1}}',
    '{"a":{"tupleStream":false,"outerWrapper":null,"b":1}}',
    '["tupleStream","outerWrapper","_jsonata_lambda"]',
  ];

  test.each(texts)('whole: %s', async (text) => {
    expect(await run('payload', text)).toBe(text);
    expect(await run('$$.payload', text)).toBe(text);
    expect(await run('{"seen": payload}', text)).toBe(`{"seen":${text}}`);
  });

  test.each(texts.slice(0, -1))('a payload is seen as it was sent in steps, wildcards, groups and variables: %s', async (text) => {
    const { a } = JSON.parse(text);
    expect(JSON.parse((await run('payload.a', text)) ?? '')).toEqual(a);
    expect(JSON.parse((await run('payload.a.$', text)) ?? '')).toEqual(a);
    expect(await run('payload.a.b', text)).toBe('1');
    expect(JSON.parse((await run('payload.a{"x": b}', text)) ?? '')).toEqual({ x: 1 });
    expect(JSON.parse((await run('$keys(payload.a)', text)) ?? '')).toEqual(Object.keys(a));
  });

  test('a payload is seen as it was sent with headers that have the name of a mark', async () => {
    expect(await run('headers', {}, { headers: { _jsonata_lambda: 'x', 'x-team': 'shop' } })).toBe(
      '{"_jsonata_lambda":"x","x-team":"shop"}',
    );
  });
});

test('functions of the expression itself are left out of the output', async () => {
  expect(await run('{"f": function($x) { $x }, "g": $sum, "a": 1}', {})).toBe('{"a":1}');
});

test.each(['()', ' ( ) ', '/* none */ ()'])(
  'an expression that has no value for any event is refused by the check and when it runs: %j',
  async (code) => {
    const message = 'the expression has no value for any event';
    await expect(jsonataEngine.check(code)).rejects.toThrow(message);
    await expect(jsonataEngine.run({ organization: 'org_a', event: '{}', payload: '{}', code, warn: () => {} })).rejects.toThrow(message);
  },
);
