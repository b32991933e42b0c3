import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assertProperty } from '../../../test/support/property.ts';
import { keptLevels, seriesPeriods } from './series-periods.ts';

const minuteMs = 60_000;
const anyNow = fc.integer({ min: Date.UTC(2020, 0, 1), max: Date.UTC(2040, 0, 1) });
const anyStep = fc.integer({ min: 1, max: 400 }).map((count) => count * 5 * minuteMs);

test('the periods of a series follow each other without gap or overlap from its beginning to its end, in whole steps', () => {
  assertProperty(
    fc.property(
      anyNow,
      anyStep,
      fc.integer({ min: 0, max: 26 * 60 }),
      fc.integer({ min: -60, max: 26 * 60 }),
      (nowMs, stepMs, back, length) => {
        const fromMs = nowMs - back * minuteMs;
        const { beginMs, endMs, names, lengthMs } = seriesPeriods({ fromMs, toMs: fromMs + length * minuteMs, stepMs }, nowMs);
        expect([beginMs % stepMs, endMs % stepMs, stepMs % lengthMs]).toEqual([0, 0, 0]);
        expect(beginMs - fromMs).toBeLessThan(stepMs);
        expect(names.map((name) => Number(name.slice(1)) * lengthMs)).toEqual(
          Array.from({ length: (endMs - beginMs) / lengthMs }, (_, i) => beginMs + i * lengthMs),
        );
        expect(endMs - nowMs).toBeLessThanOrEqual(Math.max(stepMs, beginMs - nowMs));
      },
    ),
  );
});

test('two series whose ranges adjoin have the periods of the whole, each once', () => {
  assertProperty(
    fc.property(
      anyNow,
      anyStep,
      fc.integer({ min: 0, max: 26 * 60 * minuteMs }),
      fc.integer({ min: 0, max: 26 * 60 * minuteMs }),
      (nowMs, stepMs, one, other) => {
        const [fromMs, cutMs] = [nowMs - Math.max(one, other), nowMs - Math.min(one, other)];
        const whole = seriesPeriods({ fromMs, toMs: nowMs, stepMs }, nowMs);
        const parts = [seriesPeriods({ fromMs, toMs: cutMs, stepMs }, nowMs), seriesPeriods({ fromMs: cutMs, toMs: nowMs, stepMs }, nowMs)];
        expect(parts.flatMap(({ names }) => names)).toEqual(whole.names);
      },
    ),
  );
});

test('a series of the smallest step that is kept since its beginning has at most 313 points', () => {
  assertProperty(
    fc.property(anyNow, fc.integer({ min: 0, max: 31 * 24 * 60 }), (nowMs, back) => {
      const fromMs = nowMs - back * minuteMs;
      const { beginMs, endMs, stepMs } = seriesPeriods({ fromMs, toMs: nowMs }, nowMs);
      expect((endMs - beginMs) / stepMs).toBeLessThanOrEqual(313);
      for (const { lengthMs, keptMs } of keptLevels) if (fromMs >= nowMs - keptMs) expect(stepMs).toBeLessThanOrEqual(lengthMs);
    }),
  );
});
