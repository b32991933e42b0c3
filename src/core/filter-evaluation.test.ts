import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assertProperty } from '../../test/support/property.ts';
import { withinProcessorTime } from '../../test/support/short-work.ts';
import { type CompiledFilter, compileFilter, filterLimits, tryFilter } from './filter-evaluation.ts';
import type { FilterContext } from './filter-path.ts';
import { inOnePiece } from './in-one-piece.ts';
import type { FilterCondition, FilterOperator } from './records.ts';

const event = {
  payload: {
    type: 'order.paid',
    amount: 1250,
    price: '12.50',
    paid: true,
    note: null,
    empty: '',
    at: '2026-01-02T03:04:05Z',
    customer: { id: 'c1', tags: ['vip', 'eu'], address: { city: 'Köln' } },
    items: [
      { sku: 'a', n: 1 },
      { sku: 'b', n: 2 },
    ],
    'dotted.key': 1,
  },
  headers: { 'x-github-event': 'push', 'x-count': '5', 'set-cookie': ['a=1', 'b=2'] },
  query: {},
};

const meets = (filter: CompiledFilter, context: FilterContext): boolean => inOnePiece(filter.inPieces(context)).isMet;

function isMet(field: string, operator: FilterOperator, value?: unknown, context: FilterContext = event): boolean {
  return meets(compileFilter({ logic: 'AND', conditions: [{ field, operator, value }] }), context);
}

describe('operators', () => {
  test.each<[string, FilterOperator, unknown, boolean]>([
    ['type', 'equals', 'order.paid', true],
    ['type', 'equals', 'Order.Paid', false],
    ['amount', 'equals', 1250, true],
    ['amount', 'equals', '1250', true],
    ['amount', 'equals', '1250.0', true],
    ['amount', 'equals', '01250', false],
    ['amount', 'equals', ' 1250', false],
    ['price', 'equals', 12.5, true],
    ['paid', 'equals', true, true],
    ['paid', 'equals', 'true', true],
    ['paid', 'equals', 1, false],
    ['empty', 'equals', 0, false],
    ['empty', 'equals', false, false],
    ['note', 'equals', null, true],
    ['note', 'equals', 'null', false],
    ['missing', 'equals', null, false],
    ['customer.tags', 'equals', ['vip', 'eu'], true],
    ['customer.tags', 'equals', ['eu', 'vip'], false],
    ['customer', 'equals', { id: 'c1', tags: ['vip', 'eu'], address: { city: 'Köln' } }, true],
    ['customer', 'equals', { id: 'c1', tags: ['vip', 'eu'], address: { city: 'Köln', toString: 1 } }, false],
    ['customer', 'equals', { id: 'c1', tags: ['vip', 'eu'], toString: 1 }, false],
    [
      'items',
      'equals',
      [
        { n: 1, sku: 'a' },
        { n: 2, sku: 'b' },
      ],
      true,
    ],
    ['items.0', 'equals', { n: 1, sku: 'a' }, true],
    ['items.0', 'equals', { n: 1 }, false],
    ['headers.X-Count', 'equals', 5, true],
    ['type', 'not_equals', 'order.paid', false],
    ['type', 'not_equals', 'x', true],
    ['missing', 'not_equals', 'x', true],
    ['type', 'contains', '.pa', true],
    ['type', 'contains', 'PA', false],
    ['amount', 'contains', '25', true],
    ['customer.tags', 'contains', 'vip', true],
    ['customer.tags', 'contains', 'vi', false],
    ['customer', 'contains', 'id', false],
    ['missing', 'contains', '', false],
    ['customer.tags', 'not_contains', 'us', true],
    ['missing', 'not_contains', 'us', true],
    ['type', 'starts_with', 'order.', true],
    ['type', 'starts_with', 'paid', false],
    ['missing', 'starts_with', '', false],
    ['type', 'ends_with', '.paid', true],
    ['type', 'ends_with', 'order', false],
    ['type', 'matches', '^order\\.(paid|sent)$', true],
    ['type', 'matches', 'r.p', true],
    ['type', 'matches', '^paid', false],
    ['type', 'matches', '(?i)ORDER', true],
    ['customer', 'matches', '.*', false],
    ['missing', 'matches', '.*', false],
    ['note', 'exists', undefined, true],
    ['missing', 'exists', undefined, false],
    ['customer.address.city', 'exists', undefined, true],
    ['note', 'not_exists', undefined, false],
    ['missing', 'not_exists', undefined, true],
    ['missing.deeper', 'not_exists', undefined, true],
    ['amount', 'gt', 1249, true],
    ['amount', 'gt', 1250, false],
    ['amount', 'gt', '999', true],
    ['price', 'gt', 9, true],
    ['price', 'gt', '9', true],
    ['amount', 'gte', 1250, true],
    ['amount', 'lt', 1251, true],
    ['amount', 'lt', 1250, false],
    ['amount', 'lte', 1250, true],
    ['at', 'gt', '2026-01-01T00:00:00Z', true],
    ['at', 'lt', '2026-01-01T00:00:00Z', false],
    ['type', 'gt', 5, false],
    ['type', 'lt', 5, false],
    ['paid', 'gt', 0, false],
    ['note', 'lte', 0, false],
    ['missing', 'lt', 1, false],
    ['headers.x-count', 'gte', 5, true],
    ['type', 'in', ['order.sent', 'order.paid'], true],
    ['type', 'in', [], false],
    ['amount', 'in', ['1250'], true],
    ['missing', 'in', [null], false],
    ['note', 'in', [null], true],
    ['type', 'not_in', ['order.sent'], true],
    ['type', 'not_in', ['order.paid'], false],
    ['missing', 'not_in', ['a'], true],
  ])('%s %s %j is %j', (field, operator, value, expected) => {
    expect(isMet(field, operator, value)).toBe(expected);
  });
});

describe('logic', () => {
  const yes: FilterCondition = { field: 'type', operator: 'exists' };
  const no: FilterCondition = { field: 'missing', operator: 'exists' };
  test.each<['AND' | 'OR', FilterCondition[], boolean]>([
    ['AND', [yes, yes], true],
    ['AND', [yes, no], false],
    ['OR', [no, yes], true],
    ['OR', [no, no], false],
  ])('%s of %j is %j', (logic, conditions, expected) => {
    expect(meets(compileFilter({ logic, conditions }), event)).toBe(expected);
  });
});

describe('what does not compile', () => {
  const deep = JSON.parse('['.repeat(40) + ']'.repeat(40)) as unknown;
  test.each<[FilterCondition, string]>([
    [{ field: '', operator: 'exists' }, 'field'],
    [{ field: 'a..b', operator: 'exists' }, 'field'],
    [{ field: '.a', operator: 'exists' }, 'field'],
    [{ field: 'headers.', operator: 'exists' }, 'field'],
    [{ field: 'a'.repeat(300), operator: 'exists' }, 'field'],
    [{ field: 'a', operator: 'resembles' as FilterOperator, value: 1 }, 'operator'],
    [{ field: 'a', operator: 'constructor' as FilterOperator, value: 1 }, 'operator'],
    [{ field: 'a', operator: 'exists', value: 1 }, 'value'],
    [{ field: 'a', operator: 'equals' }, 'value'],
    [{ field: 'a', operator: 'equals', value: deep }, 'value'],
    [{ field: 'a', operator: 'contains', value: {} }, 'value'],
    [{ field: 'a', operator: 'starts_with', value: null }, 'value'],
    [{ field: 'a', operator: 'gt', value: true }, 'value'],
    [{ field: 'a', operator: 'in', value: 'a' }, 'value'],
    [{ field: 'a', operator: 'in', value: Array.from({ length: 1001 }, () => 1) }, 'value'],
    [{ field: 'a', operator: 'matches', value: '(a' }, 'value'],
    [{ field: 'a', operator: 'matches', value: '(?=a)' }, 'value'],
    [{ field: 'a', operator: 'matches', value: '(a)\\1' }, 'value'],
    [{ field: 'a', operator: 'matches', value: 7 }, 'value'],
    [{ field: 'a', operator: 'matches', value: 'a'.repeat(1001) }, 'value'],
    [{ field: 'a', operator: 'matches', value: '((a{1,30}){1,30}b){1,2}' }, 'value'],
  ])('%j: its %s is named', (condition, part) => {
    const compile = (): unknown => compileFilter({ logic: 'AND', conditions: [{ field: 'x', operator: 'exists' }, condition] });
    expect(compile).toThrow(
      expect.objectContaining({ code: 'VALIDATION_FAILED', details: { [`conditions.1.${part}`]: [expect.any(String)] } }),
    );
  });

  test.each([0, filterLimits.conditions + 1])('%i conditions', (length) => {
    const conditions = Array.from({ length }, () => ({ field: 'a', operator: 'exists' as const }));
    expect(() => compileFilter({ logic: 'AND', conditions })).toThrow(expect.objectContaining({ code: 'VALIDATION_FAILED' }));
  });
});

describe('regular expressions take linear time', () => {
  test.each([
    ['^(a+)+$', false],
    ['^(a|a)*$', false],
    ['(.*)*x', false],
    ['([a-zA-Z]+)*$', true],
  ])('%s is evaluated soon on 29 characters', (value, isMet) => {
    const filter = compileFilter({ logic: 'AND', conditions: [{ field: 'a', operator: 'matches', value }] });
    const payload = { a: `${'a'.repeat(28)}!` };
    expect(withinProcessorTime(() => meets(filter, { payload, headers: {}, query: {} }))).toBe(isMet);
  });

  test('a text that is too long for its pattern does not match, at once', () => {
    const filter = compileFilter({ logic: 'AND', conditions: [{ field: 'a', operator: 'matches', value: '(?:a|b)*a(?:a|b){300}$' }] });
    expect(withinProcessorTime(() => meets(filter, { payload: { a: 'ab'.repeat(500_000) }, headers: {}, query: {} }))).toBe(false);
  });
});

describe('the patterns of a filter share their steps', () => {
  const costly = { field: 'a', operator: 'matches' as const, value: '[ab]{900}' };
  const context = { payload: { a: 'ab'.repeat(500), b: 'x' }, headers: {}, query: {} };
  const conditions = Array.from({ length: filterLimits.conditions }, () => costly);

  test('so that the later ones do not match when the earlier ones have used them', () => {
    expect(meets(compileFilter({ logic: 'AND', conditions: [costly] }), context)).toBe(true);
    expect(meets(compileFilter({ logic: 'AND', conditions }), context)).toBe(false);
    const { met } = inOnePiece(tryFilter({ logic: 'AND', conditions }, context));
    expect([met.length, met[0], met.at(-1)]).toEqual([50, true, false]);
  });

  test('and each event has them again; a pattern that needs fewer still has them', () => {
    const filter = compileFilter({ logic: 'OR', conditions: [costly, { ...costly, value: '^x$' }] });
    for (let i = 0; i < 20; i++) expect(meets(filter, context)).toBe(true);
    const short = { field: 'b', operator: 'matches' as const, value: '^x$' };
    expect(inOnePiece(tryFilter({ logic: 'OR', conditions: [...conditions.slice(1), short] }, context)).met.at(-1)).toBe(true);
  });
});

describe('the classes of patterns are bounded in what they cost to compile', () => {
  const matches = (value: string) => ({ field: 'a', operator: 'matches' as const, value });
  const compile = (values: string[]) => compileFilter({ logic: 'AND', conditions: values.map(matches) });
  const wide = '(?i)[a-\uffff]';

  test.each([
    ['one pattern', [`(?i)${'[a-\uffff]'.repeat(99)}`], 0],
    ['all patterns of a filter', Array.from({ length: 50 }, () => wide), 7],
    ['properties in all patterns of a filter', Array.from({ length: 50 }, () => '\\pL'.repeat(333)), 7],
  ])('of %s, without compiling it', (_, values, index) => {
    withinProcessorTime(() =>
      expect(() => compile(values)).toThrow(
        expect.objectContaining({ details: { [`conditions.${index}.value`]: [expect.stringContaining('(?i)')] } }),
      ),
    );
  });

  test.each([
    ['wide classes without the flag', Array.from({ length: 50 }, () => '[a-\uffff]')],
    ['words of other alphabets', Array.from({ length: 50 }, () => '(?i)^[а-яё]+ [α-ω]+[A-Z0-9_-]*$')],
    ['some properties', Array.from({ length: 20 }, () => '(?i)^\\pL+ \\p{Greek}+$')],
  ])('but %s are taken', (_, values) => {
    expect(compile(values)).toMatchObject({ readsPayload: true, inPieces: expect.any(Function) });
  });
});

describe('properties', () => {
  const operators: FilterOperator[] = [
    'equals',
    'not_equals',
    'contains',
    'not_contains',
    'starts_with',
    'ends_with',
    'matches',
    'exists',
    'not_exists',
    'gt',
    'gte',
    'lt',
    'lte',
    'in',
    'not_in',
  ];

  test('whatever the condition and the payload, a filter compiles or complains, and answers a boolean', () => {
    const anything = fc.record({ field: fc.string(), operator: fc.constantFrom(...operators), value: fc.jsonValue() });
    assertProperty(
      fc.property(anything, fc.jsonValue(), (condition, payload) => {
        let filter: ReturnType<typeof compileFilter>;
        try {
          filter = compileFilter({ logic: 'AND', conditions: [condition] });
        } catch (error) {
          expect(error).toMatchObject({ code: 'VALIDATION_FAILED' });
          return;
        }
        expect(typeof meets(filter, { payload, headers: {}, query: {} })).toBe('boolean');
      }),
    );
  });

  test('every JSON value equals itself, however its keys are ordered', () => {
    assertProperty(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        expect(isMet('a', 'equals', value, { payload: { a: reversed(value) }, headers: {}, query: {} })).toBe(true);
      }),
    );
  });

  test('a negation is the opposite of what it negates', () => {
    const pairs = fc.constantFrom<[FilterOperator, FilterOperator]>(['equals', 'not_equals'], ['contains', 'not_contains']);
    assertProperty(
      fc.property(
        pairs,
        fc.oneof(fc.string(), fc.double({ noNaN: true }), fc.boolean()),
        fc.jsonValue(),
        ([positive, negative], value, a) => {
          const context = { payload: { a }, headers: {}, query: {} };
          expect(isMet('a', positive, value, context)).toBe(!isMet('a', negative, value, context));
        },
      ),
    );
  });

  test('of two numbers exactly one of lt, equals, gt holds', () => {
    const number = fc.double({ noNaN: true, noDefaultInfinity: true });
    assertProperty(
      fc.property(number, number, (a, value) => {
        const context = { payload: { a }, headers: {}, query: {} };
        expect((['lt', 'equals', 'gt'] as const).filter((operator) => isMet('a', operator, value, context))).toHaveLength(1);
      }),
    );
  });
});

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, item]) => [key, reversed(item)]),
  );
}
