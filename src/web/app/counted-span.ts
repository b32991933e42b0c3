const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** Browser and server may differ by this much in what time it is. */
const clockErrorMs = 5 * minute;
const maxBars = 60;
const usualSpanMs = day;

/** Steps of the analytics, with how long figures in them are kept; the finest first. */
const steps = [
  { step: '5m', ms: 5 * minute, keptMs: 26 * hour, word: '5 minutes' },
  { step: '15m', ms: 15 * minute, keptMs: 26 * hour, word: '15 minutes' },
  { step: '30m', ms: 30 * minute, keptMs: 26 * hour, word: '30 minutes' },
  { step: '1h', ms: hour, keptMs: 8 * day, word: 'hour' },
  { step: '3h', ms: 3 * hour, keptMs: 8 * day, word: '3 hours' },
  { step: '6h', ms: 6 * hour, keptMs: 8 * day, word: '6 hours' },
  { step: '1d', ms: day, keptMs: 32 * day, word: 'day' },
] as const;
const coarsest = steps[steps.length - 1] ?? steps[0];

/** Counted span: whole steps, in milliseconds since the epoch. */
export interface CountedSpan {
  beginMs: number;
  /** Not part of it. */
  endMs: number;
  stepMs: number;
  step: string;
  stepWord: string;
  /** No figures are kept of the time before. */
  isCut: boolean;
}

/** Span of the times of a filter, which the API takes as days of UTC, too; 24 hours where it names none. Null: there are no figures of it. */
export function countedSpan(from: string | undefined, to: string | undefined, nowMs: number): CountedSpan | null {
  const toMs = to === undefined ? nowMs : Date.parse(to) + (to.includes('T') ? 0 : day);
  const fromMs = from === undefined ? toMs - usualSpanMs : Date.parse(from);
  // A range that ends later has no bars to come.
  const endMs = Math.min(toMs, nowMs + 1);
  if (!(fromMs < endMs)) return null;
  const keptFromMs = nowMs + clockErrorMs - coarsest.keptMs;
  const chosen = steps.find(({ ms, keptMs }) => (endMs - fromMs) / ms <= maxBars && down(fromMs, ms) >= nowMs + clockErrorMs - keptMs);
  const { ms, step, word } = chosen ?? coarsest;
  const span = { endMs: up(endMs, ms), stepMs: ms, step, stepWord: word };
  if (chosen !== undefined) return { ...span, beginMs: down(fromMs, ms), isCut: false };
  const beginMs = up(keptFromMs, ms);
  return beginMs < span.endMs ? { ...span, beginMs, isCut: true } : null;
}

function down(ms: number, step: number): number {
  return Math.floor(ms / step) * step;
}

function up(ms: number, step: number): number {
  return Math.ceil(ms / step) * step;
}
