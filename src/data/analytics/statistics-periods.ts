/** The periods in which statistics are kept (`../queue/includes/statistics.lua`), and which of them make up a range that ends now. */

export const fiveMinutesMs = 300_000;
export const hourMs = 3_600_000;
export const dayMs = 86_400_000;

export type StatisticsRange = '1h' | '24h' | '7d' | '30d';

/**
 * Names of the periods from the one in which the range begins to the one of now: `m` five minutes, `h` an hour, `d` a day (UTC). So
 * 1h is exact to five minutes, 24h and 7d to an hour, 30d to a day.
 */
export function periodsOf(range: StatisticsRange, nowMs: number): string[] {
  switch (range) {
    case '1h':
      return periods('m', fiveMinutesMs, nowMs - hourMs, nowMs);
    case '24h':
      return periods('h', hourMs, nowMs - dayMs, nowMs);
    case '7d': {
      // Hours up to the first midnight, whole days from there.
      const beginMs = nowMs - 7 * dayMs;
      const midnightMs = Math.ceil(beginMs / dayMs) * dayMs;
      return [...periods('h', hourMs, beginMs, midnightMs - 1), ...periods('d', dayMs, midnightMs, nowMs)];
    }
    case '30d':
      return periods('d', dayMs, nowMs - 30 * dayMs, nowMs);
  }
}

/** Where the range begins. */
export function rangeBeginMs(range: StatisticsRange, nowMs: number): number {
  switch (range) {
    case '1h':
      return Math.floor((nowMs - hourMs) / fiveMinutesMs) * fiveMinutesMs;
    case '24h':
      return Math.floor((nowMs - dayMs) / hourMs) * hourMs;
    case '7d':
      return Math.floor((nowMs - 7 * dayMs) / hourMs) * hourMs;
    case '30d':
      return Math.floor((nowMs - 30 * dayMs) / dayMs) * dayMs;
  }
}

const chartLevels = {
  '1h': { level: 'm', lengthMs: fiveMinutesMs, rangeMs: hourMs },
  '24h': { level: 'h', lengthMs: hourMs, rangeMs: dayMs },
  '7d': { level: 'd', lengthMs: dayMs, rangeMs: 7 * dayMs },
  '30d': { level: 'd', lengthMs: dayMs, rangeMs: 30 * dayMs },
} as const satisfies Record<StatisticsRange, unknown>;

/** The periods of a chart, of the same length each: five minutes, an hour or a day; the first begins at `beginMs`. */
export function chartPeriods(range: StatisticsRange, nowMs: number): { names: string[]; beginMs: number; lengthMs: number } {
  const { level, lengthMs, rangeMs } = chartLevels[range];
  const beginMs = Math.floor((nowMs - rangeMs) / lengthMs) * lengthMs;
  return { names: periods(level, lengthMs, beginMs, nowMs), beginMs, lengthMs };
}

/** Periods of a length in which the times from the first to the last lie. */
export function periods(level: string, lengthMs: number, fromMs: number, toMs: number): string[] {
  const first = Math.floor(fromMs / lengthMs);
  const count = Math.floor(toMs / lengthMs) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, i) => `${level}${first + i}`);
}
