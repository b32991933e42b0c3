/** The ranges of the analytics, and the step of their charts. */
export const ranges = [
  { value: '1h', word: '1 h', said: 'last hour', ms: 3_600_000, step: '5m', stepWord: '5 minutes' },
  { value: '24h', word: '24 h', said: 'last 24 hours', ms: 86_400_000, step: '30m', stepWord: '30 minutes' },
  { value: '7d', word: '7 d', said: 'last 7 days', ms: 604_800_000, step: '3h', stepWord: '3 hours' },
  { value: '30d', word: '30 d', said: 'last 30 days', ms: 2_592_000_000, step: '12h', stepWord: '12 hours' },
] as const;

export type Range = (typeof ranges)[number];

const usual: Range = ranges[1];
const fiveMinutes = 300_000;

/** The range that the address names; 24 hours where it names none. */
export function rangeOf(value: string | undefined): Range {
  return ranges.find((range) => range.value === value) ?? usual;
}

/** When the range begins; the same for five minutes, so that what was read of it can be kept. */
export function beginOf(range: Range, now: number): string {
  return new Date(Math.floor((now - range.ms) / fiveMinutes) * fiveMinutes).toISOString();
}
