import { describe, expect, test } from '@jest/globals';
import { withinProcessorTime } from '../../test/support/short-work.ts';
import { readFieldMapping } from './field-mapping.ts';
import { readJsonPath } from './json-path.ts';
import type { ColumnType } from './records.ts';
import { WorkExceededError } from './work-budget.ts';

const record = {
  id: 'evt_1',
  source: 'shop',
  receivedAt: '2026-03-01T12:00:00.000Z',
  headers: { 'x-shop': 'eu' },
  payload: {
    total: 12.5,
    text: ' 42 ',
    paid: 'TRUE',
    none: null,
    at: '2026-03-01 13:00:00+0100',
    day: '2026-03-01',
    unix: 1_772_366_400,
    unixMs: 1_772_366_400_000,
    'first name': 'Ada',
    items: [
      { sku: 'a-1', qty: 1 },
      { sku: 'b-22', qty: 3 },
    ],
    nested: { deep: { sku: 'c' } },
  },
};

/** The value of one column. */
function column(source: string, type: ColumnType, fallback?: string): unknown {
  const { mapping, problem } = readFieldMapping([{ source, target: 'column', type, ...(fallback !== undefined && { default: fallback }) }]);
  if (problem !== undefined) throw new Error(problem.message);
  return Object.fromEntries(mapping(record))['column'];
}

describe('paths of RFC 9535', () => {
  test.each<[string, unknown]>([
    ['$', [record]],
    ['$.payload.total', [12.5]],
    ["$['payload']['first name']", ['Ada']],
    ['$.payload["first name"]', ['Ada']],
    ['$.payload.items[0].sku', ['a-1']],
    ['$.payload.items[-1].sku', ['b-22']],
    ['$.payload.items[*].sku', ['a-1', 'b-22']],
    ['$.payload.items[0:1].sku', ['a-1']],
    ['$.payload.items[::-1].qty', [3, 1]],
    ['$.payload.items[0,1].qty', [1, 3]],
    ['$..sku', ['a-1', 'b-22', 'c']],
    ['$.payload.items[?@.qty > 1].sku', ['b-22']],
    ["$.payload.items[?@.sku == 'a-1' && @.qty == 1].qty", [1]],
    ['$.payload.items[?@.qty == $.payload.items[1].qty].sku', ['b-22']],
    ['$.payload.items[?length(@.sku) == 3].sku', ['a-1']],
    ['$.payload[?count(@.*) > 1][0].sku', ['a-1']],
    ["$.payload.items[?match(@.sku, '[a-z]-.')].sku", ['a-1']],
    ["$.payload.items[?match(@.sku, 'a')].sku", []],
    ["$.payload.items[?search(@.sku, '[0-9]{2}')].sku", ['b-22']],
    ["$.payload.items[?match(@.qty, '1')].sku", []],
    ["$.payload.items[?match(@.sku, '(')].sku", []],
    ['$.payload.none', [null]],
    ['$.payload.absent', []],
    ['$.payload.total.absent', []],
    ["$['__proto__']", []],
  ])('%s', (path, values) => {
    const { query, problem } = readJsonPath(path);
    expect(problem).toBeUndefined();
    expect(query?.(record)).toEqual(values);
  });

  test.each([
    '',
    'payload.total',
    '$.',
    '$.payload.',
    '$[',
    '$.payload[01]',
    '$ .payload ',
    '$.payload[?@.a = 1]',
    '$.payload[?unknown(@.a)]',
    '$.payload[?match(@.a)]',
    '$..a..b',
    '$.a[?count($.b[*]) > 1]',
    '$.a[?@.x == $..y]',
    '$.a[?$.b.c[?@.d]]',
    "$.payload['a','a']",
    '$.payload["a",\'a\']',
    '$.payload[0,0]',
    '$.payload[*,*]',
    '$.payload[*,0:]',
    '$.payload[?@.a,?@.b]',
    '$.payload[0,1,2][0,1,2]',
    "$.payload[?@['a','b']]",
    '$.payload[?(@.a && @[0,0][0,0])]',
    '$.payload[0,?@[?@[0,1]]]',
  ])('%j is refused', (path) => expect(readJsonPath(path).problem).toEqual(expect.any(String)));

  test('a pattern that would hang another engine takes no time', () => {
    const { query } = readJsonPath("$[?match(@, '(a|a)*b') || search(@, '(a+)+$b')]");
    expect(withinProcessorTime(() => query?.([`${'a'.repeat(50_000)}!`]), 100)).toEqual([]);
  });

  test('the costliest path that is accepted ends soon on a wide document', () => {
    const wide = Array.from({ length: 64 }, () => Array.from({ length: 64 }, () => Array.from({ length: 20 }, () => [])));
    const { query } = readJsonPath(`$..[*,0]${'[*,-1]'.repeat(2)}${'[*]'.repeat(20)}`);
    withinProcessorTime(() => expect(() => query?.(wide)).toThrow(WorkExceededError));
  });

  const list = <T>(length: number, item: (index: number) => T): T[] => Array.from({ length }, (_, i) => item(i));
  const members = Object.fromEntries(list(60_000, (i) => [`member${i}`, 1]));
  let seed = 1;
  /** Letters `a` and `b` in no order. */
  const mixed = (length: number): string =>
    list(length, () => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return seed < 2 ** 30 ? 'a' : 'b';
    }).join('');

  test.each<[string, string, unknown, number | null]>([
    ['a walk over 500,000 numbers', '$..a', list(500_000, () => 0), 0],
    ['a walk over 300,000 objects', '$..a', list(300_000, () => ({})), null],
    ['a walk over 60,000 members', '$..a', members, 0],
    ['all members', '$[*]', members, 60_000],
    ['a few of 500,000 elements', '$[0:3]', list(500_000, () => 0), 3],
    ['a filter of 90 parts', `$[?${'@.a&&'.repeat(90)}@.b]`, list(90_000, () => 0), null],
    ['filters in filters', '$..[?@[?@[?@>1]]]', list(6000, () => list(40, () => [1, 2])), null],
    ['the size of an object, again and again', '$.l[?length($.o) == 1]', { l: list(2000, () => 0), o: members }, 0],
    ['a pattern with a state for each place', '$.l[?search(@,"[ab]*a[ab]{200}[cd]")]', { l: list(1000, () => mixed(300)) }, null],
    ['a pattern of 900 instructions', '$.l[?search(@,"[ab]{900}[cd]")]', { l: list(900, (i) => 'a'.repeat(1000 - (i % 2))) }, null],
    [
      'patterns with wide classes in the document',
      '$.l[?match("a",@)]',
      { l: list(900, (i) => `(?i)[a-\uffff]{${i + 1}}[b-\uffff]`) },
      null,
    ],
    ['many patterns in the document', '$.l[?match("a",@)]', { l: list(20_000, (i) => `a${i}b`) }, null],
    ['long repetitions in the document', '$.l[?match("a",@)]', { l: list(20, (i) => `${'a{1000}'.repeat(140)}${i}`) }, null],
    [
      'large lists that are compared',
      '$.l[?$.a == $.b]',
      { a: list(5000, () => 0), b: list(5000, () => 0), l: list(50_000, () => 0) },
      null,
    ],
    [
      'large texts that are compared',
      '$.l[?$.a == $.b]',
      { a: 'a'.repeat(300_000), b: `${'a'.repeat(299_999)}b`, l: list(90_000, () => 0) },
      null,
    ],
  ])('%s: the path finds what there is, or ends soon', (_, path, document, found) => {
    const { query } = readJsonPath(path);
    const run = (): number | undefined | null => {
      try {
        return query?.(document).length;
      } catch (error) {
        expect(error).toBeInstanceOf(WorkExceededError);
        return null;
      }
    };
    expect(withinProcessorTime(run)).toBe(found);
  });

  test('a path that finds too many nodes has nothing', () => {
    expect(readJsonPath('$[*]').query?.(Array.from({ length: 50_000 }, () => 0))).toHaveLength(50_000);
    expect(readJsonPath('$[*]').query?.(Array.from({ length: 150_000 }, () => 0))).toEqual([]);
  });

  test('a document that is nested too deeply has nothing', () => {
    let deep: unknown = 1;
    for (let i = 0; i < 1000; i++) deep = [deep];
    expect(readJsonPath('$..a').query?.(deep)).toEqual([]);
  });
});

describe('columns', () => {
  test.each<[string, ColumnType, unknown]>([
    ['$.payload.total', 'string', '12.5'],
    ['$.payload.items[0]', 'string', '{"sku":"a-1","qty":1}'],
    ['$.headers["x-shop"]', 'string', 'eu'],
    ['$.payload.items[*].sku', 'string', 'a-1'],
    ['$.payload.total', 'number', 12.5],
    ['$.payload.text', 'number', 42],
    ['$.payload.paid', 'number', null],
    ['$.source', 'number', null],
    ['$.payload.items', 'number', null],
    ['$.payload.paid', 'boolean', true],
    ['$.payload.items[0].qty', 'boolean', true],
    ['$.payload.total', 'boolean', null],
    ['$.source', 'boolean', null],
    ['$.receivedAt', 'timestamp', '2026-03-01T12:00:00.000Z'],
    ['$.payload.at', 'timestamp', '2026-03-01T12:00:00.000Z'],
    ['$.payload.day', 'timestamp', '2026-03-01T00:00:00.000Z'],
    ['$.payload.unix', 'timestamp', '2026-03-01T12:00:00.000Z'],
    ['$.payload.unixMs', 'timestamp', '2026-03-01T12:00:00.000Z'],
    ['$.source', 'timestamp', null],
    ['$.payload.items', 'timestamp', null],
    ['$.payload.items', 'json', record.payload.items],
    ['$.payload.items[*].sku', 'json', ['a-1', 'b-22']],
    ['$.payload.items[0].sku', 'json', 'a-1'],
    ['$.payload.none', 'string', null],
    ['$.payload.absent', 'string', null],
  ])('%s as %s', (source, type, value) => expect(column(source, type)).toEqual(value));

  test.each<[ColumnType, string, unknown]>([
    ['string', '', ''],
    ['number', '0', 0],
    ['boolean', 'false', false],
    ['timestamp', '2026-01-01', '2026-01-01T00:00:00.000Z'],
    ['json', '[]', []],
    ['json', 'null', null],
  ])('of type %s have %j where the path finds nothing', (type, fallback, value) => {
    expect(column('$.payload.absent', type, fallback)).toEqual(value);
  });

  test('keep null where the payload has null, and where a value does not fit, whatever the default', () => {
    expect(column('$.payload.none', 'string', 'x')).toBeNull();
    expect(column('$.source', 'number', '7')).toBeNull();
  });

  test('are in the order of the rules', () => {
    const rules = ['b', 'a', '__proto__'].map((target) => ({ source: '$.source', target, type: 'string' as const }));
    expect(JSON.stringify(Object.fromEntries(readFieldMapping(rules).mapping?.(record) ?? []))).toBe(
      '{"b":"shop","a":"shop","__proto__":"shop"}',
    );
  });

  test.each([
    [{ source: 'id', target: 'b', type: 'string' as const }, 'source'],
    [{ source: '$.id', target: 'a', type: 'string' as const }, 'target'],
    [{ source: '$.id', target: 'b', type: 'number' as const, default: 'many' }, 'default'],
    [{ source: '$.id', target: 'b', type: 'json' as const, default: '{' }, 'default'],
  ])('%j is refused for its %s', (rule, field) => {
    const rules = [{ source: '$.id', target: 'a', type: 'string' as const }, rule];
    expect(readFieldMapping(rules).problem).toMatchObject({ index: 1, field });
  });
});
