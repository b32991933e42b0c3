import { expect, test } from '@jest/globals';
import { withinProcessorTime } from '../../test/support/short-work.ts';
import { readFieldMapping } from './field-mapping.ts';
import { readJsonPath } from './json-path.ts';

/** A pattern that backtracks takes minutes for such texts. */
const long = 1_000_000;

test.each(['number', 'timestamp'] as const)('a column of the type %s checks a million digits that are no number at once', (type) => {
  const { mapping } = readFieldMapping([{ source: '$.payload.a', target: 'a', type }]);
  expect(withinProcessorTime(() => [...(mapping?.({ payload: { a: `${'1'.repeat(long)}x` } }) ?? [])])).toEqual([['a', null]]);
});

test('a JSONPath evaluates a pattern of a million brackets in the payload at once, and it matches nothing', () => {
  const { query } = readJsonPath('$.l[?match(@.a, @.b)]');
  expect(withinProcessorTime(() => query?.({ l: [{ a: 'a', b: '['.repeat(long) }] }))).toEqual([]);
});
