import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assertProperty } from '../../test/support/property.ts';
import { withinProcessorTime } from '../../test/support/short-work.ts';
import { celEvent, celLimits, compileCelFilter } from './cel-filter.ts';

const event = celEvent({
  type: 'order.paid',
  data: JSON.parse(
    '{"amount":1250,"note":null,"id":"A-17","paid":true,"at":"2026-01-02T03:04:05Z","customer":{"tags":["vip","eu"]},"items":[{"sku":"a","n":1},{"sku":"b","n":2}],"__proto__":{"x":1},"a-b":1}',
  ),
  labels: { tier: 'gold', region: 'eu' },
  metadata: { skus: ['b', 'c'], trace: 7 },
});
const verdict = (source: string, about = event) => compileCelFilter(source)(about);

describe('an expression', () => {
  test.each([
    ['event.type == "order.paid"', true],
    ['event.type.startsWith("order.") && event.data.amount > 1000', true],
    ['event.data.amount == 1250 && event.data.amount >= 1250.0', true],
    ['event.data.amount + 1.0 < 1000.0', false],
    ['int(event.data.amount) % 2 == 0', true],
    ['labels.tier in ["gold", "platinum"]', true],
    ['"region" in labels && !("country" in labels)', true],
    ['metadata.trace == 7', true],
    ['event.data.note == null', true],
    ['has(event.data.customer) && !has(event.data.missing)', true],
    ['event.data.items[1].sku == "b"', true],
    ['event.data.items.exists(item, item.sku == "b" && item.n == 2)', true],
    ['event.data.items.all(item, item.n > 1)', false],
    ['event.data.items.exists(item, item.sku in metadata.skus)', true],
    ['event.data.items.filter(item, item.n > 0).size() == 2', true],
    ['event.data.items.map(item, item.sku) == ["a", "b"]', true],
    ['size(event.data.customer.tags) == 2', true],
    ['event.data.id.matches("^[A-Z]-[0-9]+$")', true],
    ['event.data.at > "2026" && timestamp(event.data.at) < timestamp("2027-01-01T00:00:00Z")', true],
    ['event.data["a-b"] == 1', true],
    ['type(event.data.paid) == bool && (event.data.paid ? true : false)', true],
    ['event.data.missing == 1 || true', true],
  ])('%s is %s', (source, isMatch) => {
    expect(verdict(source)).toEqual({ isMatch, error: null });
  });

  test('an expression sees members of an object alone, whatever they are called', () => {
    expect(verdict('has(event.data.constructor) || has(event.data.toString) || has(labels.constructor)')).toEqual({
      isMatch: false,
      error: null,
    });
    expect(verdict('event.data["__proto__"].x == 1')).toEqual({ isMatch: true, error: null });
  });

  test('an expression reads any JSON', () => {
    assertProperty(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (data) => {
        const about = celEvent({ type: 'a', data, labels: {}, metadata: {} });
        expect(verdict('event.data == event.data && event.type == "a"', about)).toEqual({ isMatch: true, error: null });
      }),
    );
  });
});

test.each([
  ['event.data.missing == 1', /missing/],
  ['event.data.amount', /neither true nor false/],
  ['event.data.amount + 1 > 2', /overload/],
  ['event.data.items[9].n == 1', /bounds/],
  ['event.data.id.contains(1)', /overload/],
])('an error in %s is no match, and reported', (source, error) => {
  expect(verdict(source)).toEqual({ isMatch: false, error: expect.stringMatching(error) });
});

describe('is refused with the place:', () => {
  test.each([
    ['', /^line 1, column 1: /],
    ['event.type = "a"', /^line 1, column 12: /],
    ['1', /^line 1, column 1: the result is neither true nor false$/],
    ['"event.data.a == 1"', /neither true nor false$/],
    ['[true]', /neither true nor false$/],
    ['{"a": true}', /neither true nor false$/],
    ['event.data.a &&\n  event.data.b ||', /^line 2, column \d+: /],
    ['event.type == "a" && evnet.data.x', /^line 1, column 22: there is no evnet/],
    ['event.payload.x == 1', /^line 1, column 6: event has type and data, but no payload$/],
    ['process.exit()', /^line 1, column 1: there is no process|exit/],
    ['event.data.x.replace("a", "b") == "c"', /there is no function replace/],
    ['google.protobuf.Value{number_value: 1.0} == 1.0', /there is no type google.protobuf.Value/],
    ['event.data.a.exists(x, x.exists(y, y == 1))', /at most one of all, exists/],
    ['event.data.a.all(x, x > 1) && event.data.b.all(x, x > 1)', /at most one of all, exists/],
    ['event.data.a.exists(event, event == 1)', /event has a meaning of its own/],
    ['event.data.a.matches("(?=a)")', /^line 1, column 22: not a regular expression in RE2 syntax/],
    ['event.data.a.matches("(a{1000}){1000}")', /RE2 syntax|too large/],
    ['event.data.a.matches(event.data.b)', /the pattern as text in quotes/],
    ['matches(event.data.a, "a")', /text\.matches\("pattern"\)/],
    [`${'!'.repeat(400)}true && ${'['.repeat(150)}${']'.repeat(150)} == 1`, /too large/],
    ['x'.repeat(1001), /^at most 1000 characters$/],
  ])('%s', (source, complaint) => {
    expect(() => compileCelFilter(source)).toThrow(
      expect.objectContaining({ code: 'VALIDATION_FAILED', details: { filterExpression: [expect.stringMatching(complaint)] } }),
    );
  });
});

test('any text compiles or is refused', () => {
  const words = [
    'event',
    '.data',
    '.a',
    '(',
    ')',
    '[',
    ']',
    '{',
    '}',
    ' && ',
    ' || ',
    '==',
    '"a"',
    '1',
    'x',
    ',',
    '.exists(',
    '?',
    ':',
    '!',
    '\\',
    '\n',
  ];
  assertProperty(
    fc.property(fc.array(fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 3 })), { maxLength: 20 }), (parts) => {
      try {
        compileCelFilter(parts.join(''));
      } catch (error) {
        expect(error).toMatchObject({ code: 'VALIDATION_FAILED' });
      }
    }),
    500,
  );
});

describe('an evaluation is bounded:', () => {
  const about = (data: unknown, metadata: unknown = {}) => celEvent({ type: 'a', data, labels: {}, metadata });

  test('a comprehension goes through no more elements than the limit', () => {
    const list = (length: number) => about({ list: Array.from({ length }, (_, n) => n) });
    expect(verdict('event.data.list.exists(x, x == 999)', list(celLimits.listLength))).toEqual({ isMatch: true, error: null });
    expect(verdict('event.data.list.map(x, x).size() == 1000', list(celLimits.listLength))).toEqual({ isMatch: true, error: null });
    expect(verdict('event.data.list.exists(x, x == 1)', list(celLimits.listLength + 1))).toEqual({
      isMatch: false,
      error: 'a list of 1001 elements: at most 1000',
    });
    expect(
      verdict('event.data.exists(key, key == "a")', about(Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [n, n])))),
    ).toEqual({ isMatch: false, error: expect.stringMatching(/^a list of 1001/) });
  });

  test('elements are not compared again and again with a large text', () => {
    const large = about({ list: Array.from({ length: 1000 }, () => 'b') }, { text: 'a'.repeat(200_000) });
    expect(verdict('event.data.list.exists(x, metadata.text.contains(x))', large)).toEqual({
      isMatch: false,
      error: 'the expression takes too long for this event',
    });
    expect(verdict('event.data.list.exists(x, x == event.type || x == "b")', large)).toEqual({ isMatch: true, error: null });
  });

  test('a pattern that would take a backtracking engine for ever ends soon', () => {
    const event = about({ text: `${'a'.repeat(5000)}!` });
    expect(withinProcessorTime(() => verdict('event.data.text.matches("^(a+)+$")', event))).toEqual({ isMatch: false, error: null });
  });

  test('the patterns of one expression share a bound', () => {
    const text = about({ list: Array.from({ length: 200 }, () => 'a'.repeat(10_000)) });
    expect(verdict('event.data.list.exists(x, x.matches("b"))', text)).toEqual({
      isMatch: false,
      error: 'the text is too long for matches',
    });
    expect(verdict('event.data.list[0].matches("b")', text)).toEqual({ isMatch: false, error: null });
  });

  const million = 'a'.repeat(1_000_000);
  const members = Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`k${i}`, i]));
  const costly = about({
    a: million,
    almost: `${'a'.repeat(5000)}b${'a'.repeat(5000)}`,
    digits: '1'.repeat(1_000_000),
    one: members,
    other: { ...members },
    list: Array.from({ length: 1000 }, (_, i) => i),
    objects: Array.from({ length: 1000 }, () => ({ a: 1 })),
    times: Array.from({ length: 1000 }, () => '2026-01-01T00:00:00Z'),
    long: Array.from({ length: 50_000 }, () => 'x'),
  });
  const often = (part: string, room = 1000): string =>
    Array.from({ length: Math.floor((room + 2) / (part.length + 2)) }, () => part).join('||');
  const forEach = (list: string, part: string): string => `event.data.${list}.exists(x,${often(part, 960)})`;

  test.each([
    ['a long text in a long text', 'event.data.a.contains(event.data.almost)'],
    ['the length of a long text', often('event.data.a.size()==1')],
    ['a million digits', often('int(event.data.digits)==1')],
    ['large objects that are equal', often('event.data.one!=event.data.other')],
    ['long texts that are joined', often('event.data.a+"a"==event.data.a+"b"')],
    ['a long list', often('1 in event.data.long')],
    ['comparisons of each element', forEach('list', 'x==-1')],
    ['errors of each element', forEach('list', 'x>"a"')],
    ['members that each element does not have', forEach('list', 'x.a.a.a.a==1')],
    ['lists that are made for each element', forEach('list', '[1,2,3]==[4]')],
    ['objects that are made for each element', forEach('list', '{"a":1}=={"b":2}')],
    ['a list of what has been made of each element', 'event.data.list.map(x,x)==event.data.objects'],
    ['the clocks of a zone for each element', forEach('times', 'timestamp(x).getHours("Europe/Berlin")==30')],
    ['times of each element', forEach('times', 'timestamp(x)==timestamp(0)')],
  ])('an expression that could take long ends soon: %s', (_, source) => {
    const filter = compileCelFilter(source);
    withinProcessorTime(() => filter(costly), 100);
  });

  test('what takes too long is an error, whatever other parts say', () => {
    const tooLong = { isMatch: false, error: 'the expression takes too long for this event' };
    expect(verdict(`${often('event.data.one!=event.data.other', 980)} || true`, costly)).toEqual(tooLong);
  });

  test('honest comprehensions over 1000 elements are within the limits', () => {
    const items = Array.from({ length: 1000 }, (_, i) => ({ sku: `sku-${i}`, price: i, tags: ['a', 'b'], at: '2026-01-01T00:00:00Z' }));
    for (const [source, isMatch] of [
      ['event.data.items.exists(x, x.sku == "sku-999" && x.price > 10.0 && "b" in x.tags && x.sku.startsWith("sku"))', true],
      ['event.data.items.all(x, timestamp(x.at) > timestamp("2025-01-01T00:00:00Z"))', true],
      ['event.data.items.filter(x, x.price >= 500.0).size() == 500', true],
      ['event.data.items.map(x, x.sku)[999].contains("999")', true],
    ] as const)
      expect(verdict(source, about({ items }))).toEqual({ isMatch, error: null });
  });
});
