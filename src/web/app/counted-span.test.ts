import { expect, test } from '@jest/globals';
import { countedSpan } from './counted-span.ts';

const now = Date.parse('2026-01-31T12:07:00Z');

function shown(from?: string, to?: string): unknown {
  const span = countedSpan(from, to, now);
  return span === null ? null : [new Date(span.beginMs).toISOString(), new Date(span.endMs).toISOString(), span.step, span.isCut];
}

test.each<[title: string, from: string | undefined, to: string | undefined, expected: unknown]>([
  ['no filter names a time', undefined, undefined, ['2026-01-30T12:00:00.000Z', '2026-01-31T12:30:00.000Z', '30m', false]],
  ['a quarter of an hour', '2026-01-31T11:52:00Z', undefined, ['2026-01-31T11:50:00.000Z', '2026-01-31T12:10:00.000Z', '5m', false]],
  ['an end alone', undefined, '2026-01-31T10:00:00Z', ['2026-01-30T10:00:00.000Z', '2026-01-31T10:00:00.000Z', '1h', false]],
  ['a day', '2026-01-30', '2026-01-30', ['2026-01-30T00:00:00.000Z', '2026-01-31T00:00:00.000Z', '1h', false]],
  [
    'an hour of last week',
    '2026-01-25T10:00:00Z',
    '2026-01-25T11:00:00Z',
    ['2026-01-25T10:00:00.000Z', '2026-01-25T11:00:00.000Z', '1h', false],
  ],
  ['seven days', '2026-01-24T12:07:00Z', undefined, ['2026-01-24T12:00:00.000Z', '2026-01-31T15:00:00.000Z', '3h', false]],
  ['a range that ends later', '2026-01-31T11:00:00Z', '2026-03-01', ['2026-01-31T11:00:00.000Z', '2026-01-31T12:10:00.000Z', '5m', false]],
  ['more than is kept', '2025-06-01', undefined, ['2025-12-31T00:00:00.000Z', '2026-02-01T00:00:00.000Z', '1d', true]],
  ['what is not kept', '2025-06-01', '2025-06-02', null],
  ['what is to come', '2026-02-01', undefined, null],
  ['an end before the begin', '2026-01-31T11:00:00Z', '2026-01-31T10:00:00Z', null],
  ['no time', 'yesterday', undefined, null],
])('the counts of a list are of whole steps, at most 60, that are kept: %s', (_title, from, to, expected) => {
  expect(shown(from, to)).toEqual(expected);
});
