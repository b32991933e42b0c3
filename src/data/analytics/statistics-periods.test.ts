import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assertProperty } from '../../../test/support/property.ts';
import { periodsOf, rangeBeginMs, type StatisticsRange } from './statistics-periods.ts';

const lengths: Record<string, number> = { m: 300_000, h: 3_600_000, d: 86_400_000 };
const lengthsOfRanges: [StatisticsRange, number][] = [
  ['1h', 3_600_000],
  ['24h', 86_400_000],
  ['7d', 7 * 86_400_000],
  ['30d', 30 * 86_400_000],
];

test.each(lengthsOfRanges)('the periods of %s follow each other without gap or overlap, from its beginning to now', (range, lengthMs) => {
  assertProperty(
    fc.property(fc.integer({ min: Date.UTC(2020, 0, 1), max: Date.UTC(2040, 0, 1) }), (nowMs) => {
      const beginMs = rangeBeginMs(range, nowMs);
      expect(nowMs - beginMs).toBeGreaterThanOrEqual(lengthMs);
      let atMs = beginMs;
      for (const period of periodsOf(range, nowMs)) {
        const length = lengths[period.slice(0, 1)] ?? 0;
        expect(Number(period.slice(1)) * length).toBe(atMs);
        atMs += length;
      }
      expect(atMs).toBeGreaterThan(nowMs);
      expect(periodsOf(range, nowMs).length).toBeLessThanOrEqual(32);
    }),
  );
});
