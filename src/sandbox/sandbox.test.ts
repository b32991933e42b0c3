import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from '@jest/globals';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { lenientBy, lenientClock } from '../../test/support/lenient-clock.ts';
import { systemClock } from '../runtime/system-clock.ts';
import { sandboxLimits, type TransformType, usualForm } from './jobs.ts';
import { Sandbox } from './sandbox.ts';

/** A busy machine lets code compute for as long as it may until its deadline. */
const slowClock = lenientBy(3);
const sandbox = new Sandbox({ clock: slowClock, processes: 1 });
/** For code that only its deadline stops, and that computes until then. A busy machine lets it compute for a part of that time. */
const untilDeadline = { processes: 1, form: { ...usualForm, computingMs: sandboxLimits.computingMs / 4 } };
const prompt = new Sandbox({ clock: systemClock, ...untilDeadline });
afterAll(() => {
  sandbox.close();
  prompt.close();
});

const payload = { amount: 5, items: [{ name: 'a' }, { name: 'b' }], __proto__: null };
const event = (body: string = JSON.stringify(payload)) => ({
  description: JSON.stringify({ id: 'evt_1', source: 'shop', receivedAt: '2026-01-31T12:00:00.000Z', headers: { 'x-kind': 'order' } }),
  payload: Buffer.from(body),
});
const run = (type: TransformType, code: string, body?: string, by = sandbox) =>
  by.transform({ organization: 'org_a' }, { type, code }, event(body));
const output = async (type: TransformType, code: string, body?: string) => (await run(type, code, body)).output?.body ?? null;
const processes = async () =>
  (await promisify(execFile)('pgrep', ['-P', String(process.pid), '-f', 'process-body'])).stdout.trim().split('\n').map(Number);
const problem = async (type: TransformType, code: string, body?: string) => (await run(type, code, body)).problem?.message ?? null;

describe('what a transform sees and makes', () => {
  test.each<[TransformType, string, string | null]>([
    ['jsonata', '{"total": payload.amount, "kind": headers."x-kind", "from": source}', '{"total":5,"kind":"order","from":"shop"}'],
    ['jsonata', 'payload.items.name', '["a","b"]'],
    ['jsonata', 'payload.missing', null],
    ['jsonata', 'null', null],
    ['javascript', 'function transform(event) { return { n: event.payload.amount * 2, id: event.id }; }', '{"n":10,"id":"evt_1"}'],
    ['javascript', '(event) => event.payload.items.map(({ name }) => name)', '["a","b"]'],
    ['javascript', '({ at: event.receivedAt })', '{"at":"2026-01-31T12:00:00.000Z"}'],
    ['javascript', 'async function transform(event) { return await Promise.resolve(event.headers); }', '{"x-kind":"order"}'],
    ['javascript', 'undefined', null],
    ['javascript', 'null', null],
    ['liquid', '{"n": {{ payload.amount }}}', '{"n": 5}'],
    ['liquid', 'Order of {{ payload.amount }} from {{ source }}', 'Order of 5 from shop'],
    ['liquid', ' {% if payload.missing %}text{% endif %}\n', null],
  ])('%s: %s', async (type, code, expected) => {
    expect(await output(type, code)).toBe(expected);
  });

  test.each<[TransformType, string]>([
    ['jsonata', 'payload'],
    ['javascript', 'event.payload'],
    ['liquid', '{{ payload }}'],
  ])('%s sees a payload that is no JSON as text', async (type, code) => {
    expect(await output(type, code, 'plain words')).toBe(type === 'liquid' ? 'plain words' : '"plain words"');
  });

  test('only a template whose text is no JSON is text', async () => {
    expect((await run('liquid', '{"a": 1}')).output?.contentType).toBe('application/json');
    expect((await run('liquid', 'a = 1')).output?.contentType).toBe('text/plain; charset=utf-8');
    expect((await run('jsonata', '"a"')).output?.contentType).toBe('application/json');
  });
});

describe('code that does not parse is refused with its position', () => {
  test.each<[TransformType, string, number, number]>([
    ['jsonata', '{"a": 1,\n "b" }', 2, 7],
    ['javascript', 'function transform(event) {\n  let a = ;\n}', 2, 11],
    ['liquid', 'first\n{% for %}', 2, 1],
    ['liquid', '{{ payload | nothing }}', 1, 1],
  ])('%s: %s', async (type, code, line, column) => {
    expect(await sandbox.checkTransform('org_a', { type, code })).toEqual({ message: expect.stringMatching(/\S/), line, column });
  });

  test('a check does not run the code', async () => {
    expect(await sandbox.checkTransform('org_a', { type: 'javascript', code: 'while (true) {}' })).toBeNull();
  });
});

describe('hostile code is stopped, and the next transform runs', () => {
  test.each<[string, TransformType, string, RegExp]>([
    ['an endless loop', 'javascript', 'while (true) {}', /stopped after/],
    ['an endless loop', 'jsonata', '($f := function($n) { $f($n + 1) }; $f(1))', /timeout|stopped after/],
    ['an endless loop', 'liquid', '{% for i in (1..1000000000) %}x{% endfor %}', /limit exceeded/],
    ['endless asynchronous work', 'javascript', '(async () => { for (;;) await 1; })()', /stopped after/],
    ['a promise that never settles', 'javascript', 'new Promise(() => {})', /never settled/],
    ['an allocation bomb', 'javascript', 'const all = []; for (;;) all.push({});', /16 MiB|stopped after/],
    ['a huge array buffer', 'javascript', 'new ArrayBuffer(2 ** 28)', /16 MiB/],
    ['an allocation bomb', 'jsonata', '($s := $pad("x", 100000000); $s & $s & $s & "a")', /memory|stopped after/],
    ['a long sequence', 'jsonata', '[1..10000000]', /sequence length/],
    [
      'an allocation bomb',
      'liquid',
      '{% assign x = "a" %}{% for i in (1..60) %}{% assign x = x | append: x %}{% endfor %}{{ x }}',
      /limit exceeded/,
    ],
    ['deep recursion', 'javascript', 'function transform() { return transform() + 1; }', /stack overflow/],
    ['deep recursion', 'jsonata', '($f := function($n) { 1 + $f($n + 1) }; $f(1))', /Stack overflow/],
    ['regular expression backtracking', 'javascript', `/^(a+)+$/.test("${'a'.repeat(50)}!")`, /stopped after/],
    ['a huge output', 'javascript', '"x".repeat(1048577)', /larger than 1 MiB/],
    ['a huge output', 'jsonata', '$pad("x", 1048577)', /larger than 1 MiB/],
    ['a file', 'liquid', '{% render "/etc/passwd" %}', /Failed to lookup/],
    ['a module', 'javascript', 'import("node:fs")', /could not load module/],
    ['an error with a secret of its own', 'javascript', 'function transform() {\n  throw new Error("boom");\n}', /^Error: boom$/],
  ])('%s in %s', async (_what, type, code, expected) => {
    expect(await problem(type, code)).toMatch(expected);
    expect(await output('jsonata', 'payload.amount')).toBe('5');
  });

  test('regular expression backtracking in jsonata', async () => {
    const stopped = await run('jsonata', `$match("${'a'.repeat(50)}!", /^(a+)+$/)`, undefined, prompt);
    expect(stopped.problem?.message).toMatch(/stopped after/);
    expect((await run('jsonata', 'payload.amount', undefined, prompt)).output?.body).toBe('5');
  });

  test('nested expressions of $eval are stopped too', async () => {
    expect(await output('jsonata', '$eval("1 + 1")')).toBe('2');
    expect(await problem('jsonata', '$eval("($f := function($n) { $f($n + 1) }; $f(1))")')).toMatch(/timeout|stopped after/i);
  });

  test('nothing of the host is in reach', async () => {
    const names = ['process', 'require', 'fetch', 'globalThis.process', 'console', 'setTimeout', 'WebAssembly', 'Worker'];
    expect(await output('javascript', `[${names.map((name) => `typeof ${name}`).join(', ')}]`)).toBe(
      JSON.stringify(names.map(() => 'undefined')),
    );
    expect(await output('jsonata', 'payload.constructor.constructor("return process")()')).toBeNull();
    expect(await output('jsonata', '$string.constructor')).toBeNull();
    expect(await output('jsonata', '$lookup($string, "constructor")')).toBeNull();
    expect(await output('liquid', '{{ payload.constructor }}{{ payload.__proto__ }}{{ payload.items.constructor }}-')).toBe('-');
  });

  test.each<[TransformType, string]>([
    ['jsonata', '$merge([payload, {"__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": true}}}])'],
    ['javascript', '(event) => { Object.prototype.polluted = true; event.payload.__proto__.polluted = true; return 1; }'],
    ['liquid', '{{ payload | json }}'],
  ])('%s pollutes no prototype for the next one', async (type, code) => {
    await run(type, code, '{"__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": true}}}');
    expect(await output('jsonata', '{"seen": payload.polluted}')).toBe('{}');
    expect(await output('javascript', '(event) => [event.payload.polluted ?? null, {}.polluted ?? null]')).toBe('[null,null]');
    expect(await output('liquid', '{{ payload.polluted }}.')).toBe('.');
  });

  test('a run leaves nothing behind for the next one', async () => {
    const code = 'globalThis.count = (globalThis.count ?? 0) + 1; count';
    expect([await output('javascript', code), await output('javascript', code)]).toEqual(['1', '1']);
  });
});

describe('schemas', () => {
  const check = async (schema: object) => (await sandbox.checkSchema('org_a', JSON.stringify(schema)))?.message ?? null;
  const validateAll = (schemas: object[], body: string, most = 1, by = sandbox) =>
    by.validate(
      { organization: 'org_a' },
      schemas.map((schema) => JSON.stringify(schema)),
      Buffer.from(body),
      { maxProblems: most },
    );
  const validate = async (schema: object, body: string, most?: number, by?: Sandbox) => (await validateAll([schema], body, most, by))[0];
  const endless = (): object => {
    const twice = (next: string) => ({ anyOf: [{ $ref: next }, { $ref: next }] });
    const $defs = Object.fromEntries(
      Array.from({ length: 40 }, (_, i) => [`a${i}`, i === 39 ? { type: 'string' } : twice(`#/$defs/a${i + 1}`)]),
    );
    return { $defs, $ref: '#/$defs/a0' };
  };

  test.each<[string, object, RegExp | null]>([
    ['draft 2020-12', { type: 'array', prefixItems: [{ type: 'string' }] }, null],
    ['draft 07', { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object', definitions: { a: {} } }, null],
    ['another draft', { $schema: 'http://json-schema.org/draft-04/schema#' }, /draft 2020-12 or draft 07/],
    ['a wrong keyword value', { type: 'objekt' }, /^\/type must/],
    ['a reference to elsewhere', { $ref: 'https://example.com/schema.json' }, /resolve reference/],
    ['a local reference', { $defs: { a: { type: 'string' } }, $ref: '#/$defs/a' }, null],
    ['a pattern that is not RE2', { type: 'string', pattern: '(?=x)' }, /RE2/],
    ['a keyword that nobody knows', { type: 'string', 'x-note': 'for people' }, null],
  ])('%s', async (_what, schema, expected) => {
    if (expected === null) expect(await check(schema)).toBeNull();
    else expect(await check(schema)).toMatch(expected);
  });

  test('a payload is refused with what it breaks, and the place', async () => {
    const schema = {
      type: 'object',
      required: ['id'],
      additionalProperties: false,
      properties: { id: { type: 'string', format: 'uuid' } },
    };
    expect(await validate(schema, '{"id":"9b2f6c1e-7f1e-4c5e-9d6e-0c8d0f7b1a11"}')).toEqual([]);
    expect(await validate(schema, '{"id":"x"}')).toEqual([{ path: '/id', message: 'must match format "uuid"' }]);
    expect(await validate(schema, '{"more":1}', 10)).toEqual([
      { path: '', message: "must have required property 'id'" },
      { path: '', message: 'must NOT have additional properties: more' },
    ]);
    expect(await validate(schema, 'no json')).toEqual([{ path: '', message: 'is not JSON' }]);
  });

  test('$data is no reference into the payload', async () => {
    const schema = { properties: { a: { type: 'string' }, b: { const: { $data: '1/a' } } } };
    expect(await validate(schema, '{"a":"x","b":"x"}')).toHaveLength(1);
  });

  test('two schemas with one $id do not meet', async () => {
    const named = (type: string) => ({ $id: 'https://example.com/same', type });
    expect(await validate(named('string'), '1')).toHaveLength(1);
    expect(await validate(named('number'), '1')).toEqual([]);
  });

  test('patterns run in linear time', async () => {
    expect(await validate({ type: 'string', pattern: '^(a+)+$' }, JSON.stringify(`${'a'.repeat(10_000)}!`))).toEqual([
      { path: '', message: 'must match pattern "^(a+)+$"' },
    ]);
  });

  test('a schema that takes for ever is stopped, and the payload counts as unchecked', async () => {
    expect(await validate(endless(), '1', 1, prompt)).toEqual([{ path: '', message: expect.stringContaining('cannot be checked') }]);
    expect(await validate({ type: 'number' }, '1', 1, prompt)).toEqual([]);
  });

  test('many schemas are one job, and one that takes for ever or is none does not fail the others', async () => {
    const all = await validateAll(
      Array.from({ length: 600 }, (_, i) => ({ type: i % 2 === 0 ? 'number' : 'string' })),
      '1',
    );
    expect(all.map(([problem]) => problem?.message ?? null)).toEqual(
      Array.from({ length: 600 }, (_, i) => (i % 2 === 0 ? null : 'must be string')),
    );
    // Whose computing counts for nothing, so that the last one has its time.
    const tireless = new Sandbox({ clock: { ...systemClock, now: () => 0 }, ...untilDeadline });
    const schemas = [{ type: 'number' }, { $schema: 'draft-04' }, endless(), { type: 'string' }];
    const answer = await validateAll(schemas, '1', 1, tireless).finally(() => tireless.close());
    expect(answer).toEqual([
      [],
      [{ path: '', message: 'cannot be checked: $schema must be draft 2020-12 or draft 07' }],
      // Whichever comes first.
      [
        {
          path: '',
          message: expect.stringMatching(/^cannot be checked: (stopped after [246]000 ms|more memory than a transform may use)$/),
        },
      ],
      [{ path: '', message: 'must be string' }],
    ]);
  });
});

test('schemas that all take for ever end in bounded time, and those that had none left count as unchecked', async () => {
  const payload = Buffer.from(JSON.stringify(Array.from({ length: 80_000 }, (_, i) => ({ i }))));
  const slow = JSON.stringify({ uniqueItems: true });
  const validated = prompt.validate({ organization: 'org_a' }, [slow, slow, slow, slow, '{}'], payload, { maxProblems: 1 });
  const problems = await validated;
  const messages = problems.map(([problem]) => problem?.message);
  const unbegun = messages.filter((message) => message === 'cannot be checked: the schemas took 5000 ms before it');
  expect(unbegun.length).toBeGreaterThanOrEqual(3);
  // A slow machine gives the check of all of them more than the 2 s.
  const begun = messages.slice(0, 5 - unbegun.length);
  expect(begun.length).toBeGreaterThanOrEqual(1);
  for (const message of begun) expect(message).toMatch(/^cannot be checked: stopped after [246]000 ms$/);
});

test('code that the machine does not let compute is not to blame: it is waited for, and given up at last', async () => {
  const clock = new FakeClock();
  const starved = new Sandbox({ clock, processes: 1 });
  const transformed = (code: string) => starved.transform({ organization: 'org_a' }, { type: 'javascript', code }, event());
  try {
    const others = new Set(await processes().catch(() => []));
    expect((await transformed('1')).output?.body).toBe('1');
    const [pid = 0] = (await processes()).filter((each) => !others.has(each));
    process.kill(pid, 'SIGSTOP');
    const late = transformed('2');
    await clock.advance(2 * sandboxLimits.hardDeadlineMs);
    process.kill(pid, 'SIGCONT');
    expect((await late).output?.body).toBe('2');
    process.kill(pid, 'SIGSTOP');
    const givenUp = expect(transformed('3')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await clock.advance(3 * sandboxLimits.hardDeadlineMs);
    await givenUp;
    expect((await transformed('4')).output?.body).toBe('4');
  } finally {
    starved.close();
  }
});

test('slow transforms of one organization do not hold up those of another', async () => {
  const shared = new Sandbox({ clock: slowClock, processes: 2 });
  try {
    await shared.transform({ organization: 'org_b' }, { type: 'jsonata', code: '1' }, event());
    const slow = Array.from({ length: 12 }, () =>
      shared.transform({ organization: 'org_slow' }, { type: 'javascript', code: 'while (true) {}' }, event()),
    );
    let slowDone = 0;
    for (const each of slow)
      void each.then(
        () => slowDone++,
        () => {},
      );
    // Aborted, when the machine does not let it compute.
    await slow[0]?.catch(() => undefined);
    for (let i = 0; i < 50; i++) await shared.transform({ organization: 'org_b' }, { type: 'jsonata', code: 'payload.amount' }, event());
    expect(slowDone).toBeLessThan(12);
  } finally {
    shared.close();
  }
});

test('a sandbox that is closed refuses what is under way, what waits and what comes', async () => {
  const closing = new Sandbox({ clock: slowClock, processes: 1 });
  const endless = () => closing.transform({ organization: 'org_a' }, { type: 'javascript', code: 'while (true) {}' }, event());
  const [first, rest] = [endless(), Promise.allSettled([endless(), endless()])];
  await first;
  closing.close();
  expect((await rest).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await expect(closing.transform({ organization: 'org_a' }, { type: 'jsonata', code: '1' }, event())).rejects.toMatchObject({
    code: 'UNAVAILABLE',
  });
});

test('a process that is ended from outside is not the fault of the code', async () => {
  const killed = new Sandbox({ clock: lenientClock, processes: 1 });
  try {
    const before = new Set(await processes().catch(() => []));
    await killed.transform({ organization: 'org_a' }, { type: 'jsonata', code: '1' }, event());
    const [pid = 0] = (await processes()).filter((each) => !before.has(each));
    const answer = killed.transform({ organization: 'org_a' }, { type: 'javascript', code: 'while (true) {}' }, event());
    process.kill(pid, 'SIGTERM');
    setTimeout(() => process.kill(pid, 'SIGKILL'), 100);
    await expect(answer).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect((await killed.transform({ organization: 'org_a' }, { type: 'jsonata', code: '1' }, event())).output?.body).toBe('1');
  } finally {
    killed.close();
  }
});

test('too many transforms of one organization are refused, and others are taken', async () => {
  const small = new Sandbox({ clock: lenientClock, processes: 1 });
  try {
    const many = Array.from({ length: 1 + usualForm.waitingOfOrganization + 1 }, () =>
      small.transform({ organization: 'org_a' }, { type: 'jsonata', code: '1' }, event()),
    );
    const answers = await Promise.allSettled([
      ...many,
      small.transform({ organization: 'org_b' }, { type: 'jsonata', code: '1' }, event()),
    ]);
    expect(answers.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(0);
    expect(answers.at(-1)).toMatchObject({ status: 'fulfilled' });
  } finally {
    small.close();
  }
});

test('the payloads of one route that wait are bounded in bytes, and others are taken', async () => {
  const small = new Sandbox({ clock: lenientClock, processes: 1 });
  try {
    const payload = Buffer.alloc(1_048_576, 'x');
    const many = Array.from({ length: 66 }, () =>
      small.transform({ organization: 'org_a', part: 'rte_a' }, { type: 'jsonata', code: '1' }, { ...event(), payload }),
    );
    const answers = await Promise.allSettled([
      ...many,
      small.transform({ organization: 'org_a', part: 'rte_b' }, { type: 'jsonata', code: '1' }, event()),
      small.transform({ organization: 'org_b' }, { type: 'jsonata', code: '1' }, event()),
    ]);
    const statuses = [...Array.from({ length: 65 }, () => 'fulfilled'), 'rejected', 'fulfilled', 'fulfilled'];
    expect(answers.map(({ status }) => status)).toEqual(statuses);
    expect(answers[65]).toMatchObject({ reason: { code: 'UNAVAILABLE' } });
  } finally {
    small.close();
  }
});

test('what nobody waits for any more leaves the queue', async () => {
  const small = new Sandbox({ clock: slowClock, processes: 1 });
  try {
    const busy = small.transform({ organization: 'org_a' }, { type: 'javascript', code: 'while (true) {}' }, event());
    let isBusy = true;
    void busy.then(() => {
      isBusy = false;
    });
    const over = new AbortController();
    const dropped = small.validate({ organization: 'org_a' }, ['{}'], Buffer.from('1'), { maxProblems: 1, signal: over.signal });
    const droppedToo = small.transform({ organization: 'org_a' }, { type: 'jsonata', code: '1' }, event(), over.signal);
    over.abort();
    await expect(dropped).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await expect(droppedToo).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(isBusy).toBe(true);
    await busy;
  } finally {
    small.close();
  }
});
