import { describe, expect, test } from '@jest/globals';
import { javascriptEngine } from './javascript.ts';

const input = { organization: 'org_a', event: JSON.stringify({ id: 'evt_1', source: 'shop' }), payload: '{"n":5}' };
const run = (code: string) => javascriptEngine.run({ ...input, code });

describe('a function transform is called however it is bound', () => {
  test.each([
    'function transform(event) { return event.payload.n; }',
    'const transform = (event) => event.payload.n;',
    'let transform = function (event) { return event.payload.n; };',
    'var transform = (event) => event.payload.n;',
    'const transform = async ({ payload }) => await payload.n;',
    'const rate = 1, transform = (event) => event.payload.n * rate;',
    "'use strict';\nconst transform = (event) => event.payload.n;",
    '"use strict"; function transform(event) { return event.payload.n; }',
    'const { transform } = { transform: (event) => event.payload.n };',
    'const { run: transform = (event) => event.payload.n } = {};',
    'const [, transform] = [1, (event) => event.payload.n];',
    'const { id, ...transform } = {}; transform.n = 5; (event) => event.payload.n',
    'class Shop { static total(event) { return event.payload.n; } }\nconst transform = Shop.total;',
    'const transform = ((rate) => (event) => event.payload.n * rate)(1);',
    "const transform = new Function('event', 'return event.payload.n');",
    'const transform = (event) => seen.n; const seen = {}; seen.n = event.payload.n;',
    'let transform; { transform = (event) => event.payload.n; }',
    'globalThis.transform = (event) => event.payload.n;',
    'transform = (event) => event.payload.n; 7',
    'const setUp = () => { globalThis.transform = (event) => event.payload.n; }; const done = setUp();',
    "const done = Object.defineProperty(globalThis, 'transform', { value: (event) => event.payload.n });",
    'let event = 3; const transform = ({ payload }) => payload.n;',
  ])('%s', async (code) => {
    await javascriptEngine.check(code);
    expect(await run(code)).toBe('5');
  });
});

test.each([
  ['const transform = (payload) => payload.n; (event) => transform(event.payload)', '5'],
  ['class transform { static of(n) { return n; } }\ntransform.of(event.payload.n)', '5'],
  ['const n = event.payload.n; ({ n })', '{"n":5}'],
  ["'use strict'; event.payload.n", '5'],
  ["'a constant'", '"a constant"'],
])('the value of a script is its output: %s', async (code, output) => {
  await javascriptEngine.check(code);
  expect(await run(code)).toBe(output);
});

test.each([
  ['() => () => 1', 'function'],
  ['() => Symbol.iterator', 'symbol'],
  ['function* transform(event) { yield event.payload; }', 'Generator'],
  ['async function* transform(event) { yield event.payload; }', 'AsyncGenerator'],
  ['(event) => new Map(Object.entries(event.payload))', 'Map'],
  ['async (event) => new Set([event.payload.n])', 'Set'],
  ["() => new Error('not this one')", 'Error'],
  ['() => /a/', 'RegExp'],
])('an output that JSON would write as {} or not at all is an error: %s', async (code, kind) => {
  await expect(run(code)).rejects.toThrow(`the output is a ${kind}, which JSON does not have`);
});

test.each([
  ['() => ({})', '{}'],
  ['() => Object.create(null)', '{}'],
  ['() => new (class Order {})()', '{}'],
  ['() => new Date(0)', '"1970-01-01T00:00:00.000Z"'],
  ['() => new Proxy({ n: 1 }, {})', '{"n":1}'],
  ["() => new String('a')", '"a"'],
  ['() => Object.assign(new Map(), { n: 1 })', '{"n":1}'],
])('an output that JSON has a form for is written in it: %s', async (code, output) => {
  expect(await run(code)).toBe(output);
});

test.each([
  'const transform = () => undefined;',
  'const transform = (event) => { if (event.payload.n > 5) return event.payload; };',
  'const transform = async () => {};',
  'function transform() {}',
  'undefined',
  'void 0',
  'event.payload.n > 5 ? event.payload : undefined',
  'if (event.payload.n > 5) event.payload;',
  'const f = () => {}; f(event);',
  'const transform = (event) => { switch (event.payload.n) { case 1: try { return 1; } finally { event.n = 1; } } };',
  'function transform(event) { return void event; }',
  '{ function transform(event) { return undefined; } }',
])('no output is none, and no failure: %s', async (code) => {
  await javascriptEngine.check(code);
  expect((await run(code)) ?? null).toBeNull();
});

test.each(['for (const n of [1]) { const m = n; }', 'if (false) {}'])(
  'a loop or branch at the end gives the code no value: transform is called after %s',
  async (end) => {
    const code = `let note;\nfunction transform(event) { note(event); return event.payload; }\nnote = function (event) { event.payload.n = 2; };\n${end}`;
    await javascriptEngine.check(code);
    expect(await run(code)).toEqual(await run('function transform(event) { event.payload.n = 2; return event.payload; }'));
  },
);

const nothing = 'the code neither defines a function "transform" nor has a value';
const notAFunction = 'transform is not a function';
const returnsNothing = 'the function has no return with a value, so that no event would be delivered';

describe('code that comes to nothing for every event is refused by the check and when it runs', () => {
  test.each([
    ['function handler(event) { return event.payload; }', nothing],
    ['async function handler(event) { return event.payload; }', nothing],
    ['const handler = (event) => event.payload;', nothing],
    ['const handlers = { transform(event) { return event.payload; } };', nothing],
    ['class Shop { transform(event) { return event.payload; } }', nothing],
    ['const transforms = [(event) => event.payload];', nothing],
    ['const { transform: other } = { transform: (event) => event.payload };', nothing],
    ["'use strict';\nfunction handler(event) { return event.payload; }", nothing],
    ['// const transform = (event) => event.payload;', nothing],
    [' ;\n', nothing],
    ['const output = event.payload;', nothing],
    ['class transform { static run(event) { return event.payload; } }', notAFunction],
    ['const transform = { n: event.payload.n };', notAFunction],
    ['const transform = [event.payload];', notAFunction],
    ['const transform = `order`;', notAFunction],
    ['var transform = null;', notAFunction],
    ['let transform;', notAFunction],
    ['const transform = class { run() {} };', notAFunction],
    ['{ var transform = 5; }', notAFunction],
    ['{ let transform = (event) => event.payload; }', nothing],
    ['try { const transform = (event) => event.payload; } catch {}', nothing],
    ['if (event.payload.n) { class Order {} }', nothing],
    ['(event) => { event.payload.n = 1; }', returnsNothing],
    ['function transform(event) { event.payload.n = 1; return; }', returnsNothing],
    ['const transform = async (event) => { if (event.payload.n) { delete event.payload.n; } };', returnsNothing],
    ['transform = function (event) { for (const n of [1]) event.payload.n = n; };', returnsNothing],
    ['var transform = (event) => { event.payload.list = [1].map((n) => { return n; }); }', returnsNothing],
  ])('%s', async (code, message) => {
    await expect(javascriptEngine.check(code)).rejects.toThrow(message);
    await expect(run(code)).rejects.toThrow(message);
  });

  test.each([
    ['const transform = event.payload;', notAFunction],
    ['const make = () => undefined; const transform = make();', notAFunction],
    ['const { transform } = {};', notAFunction],
    ['const { transform = class {} } = {};', notAFunction],
    ['function transform() { throw new Error("not this one"); }', 'not this one'],
    ['const setUp = (target) => { target.transform = (event) => event.payload; }; const done = setUp({});', nothing],
  ])('what is known only when it runs fails then: %s', async (code, message) => {
    await javascriptEngine.check(code);
    await expect(run(code)).rejects.toThrow(message);
  });
});

test.each([
  'export const transform = (event) => event.payload;',
  'export default (event) => event.payload;',
  '// a module\nexport function transform(event) { return event.payload; }',
  'const transform = (event) => event.payload;\nexport { transform };',
  'import { transform } from "shop";',
  'const transform = await 1;',
])('a module is refused by the check and when it runs, with one message: %s', async (code) => {
  const complaint = async (work: Promise<unknown>) => await work.then(() => null).catch(({ message, line }) => ({ message, line }));
  const checked = await complaint(javascriptEngine.check(code));
  expect(checked).toEqual({ message: expect.stringMatching(/^SyntaxError/), line: expect.any(Number) });
  expect(await complaint(run(code))).toEqual(checked);
});
