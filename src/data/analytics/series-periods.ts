import { invalidParameter, type PosthornError } from '../../core/errors.ts';
import { dayMs, fiveMinutesMs, hourMs, periods } from './statistics-periods.ts';

/** How long periods of a length are kept, as `../queue/includes/statistics.lua` does it; the finest first. */
export const keptLevels = [
  { level: 'm', name: '5m', lengthMs: fiveMinutesMs, keptMs: 26 * hourMs, keptText: '26 hours' },
  { level: 'h', name: '1h', lengthMs: hourMs, keptMs: 8 * dayMs, keptText: '8 days' },
  { level: 'd', name: '1d', lengthMs: dayMs, keptMs: 32 * dayMs, keptText: '32 days' },
] as const;
type KeptLevel = (typeof keptLevels)[number];

export const minStepMs = fiveMinutesMs;
export const maxStepMs = 32 * dayMs;

/** Source of a series. It begins and ends with a step; steps are counted from 1970 (UTC). */
export interface SeriesPeriods {
  beginMs: number;
  /** Not part of it. */
  endMs: number;
  stepMs: number;
  /** Names of the periods that make up the steps, of this length each. */
  names: readonly string[];
  lengthMs: number;
}

/**
 * The steps that begin in [`fromMs`, `toMs`), those of the future left out: so two ranges that adjoin share no step and lose none. Without `stepMs`, which is a
 * multiple of five minutes, it is the smallest that is kept since `fromMs`. Throws INVALID_QUERY where the step is not kept that long.
 */
export function seriesPeriods({ fromMs, toMs, stepMs }: { fromMs: number; toMs: number; stepMs?: number }, nowMs: number): SeriesPeriods {
  const step = stepMs ?? finestSince(fromMs, nowMs).lengthMs;
  const beginMs = alignedUp(fromMs, step);
  const endMs = Math.max(beginMs, Math.min(alignedUp(toMs, step), alignedUp(nowMs + 1, step)));
  const level = coarsestIn(step);
  if (beginMs < nowMs - level.keptMs) throw notKept(level, beginMs, nowMs);
  return { beginMs, endMs, stepMs: step, names: periods(level.level, level.lengthMs, beginMs, endMs - 1), lengthMs: level.lengthMs };
}

function alignedUp(ms: number, stepMs: number): number {
  return Math.ceil(ms / stepMs) * stepMs;
}

/** A step of hours is made from hours, also where five minutes are kept: fewer are read. */
function coarsestIn(stepMs: number): KeptLevel {
  return keptLevels.findLast(({ lengthMs }) => stepMs % lengthMs === 0) ?? keptLevels[0];
}

function finestSince(fromMs: number, nowMs: number): KeptLevel {
  return keptLevels.find(({ lengthMs, keptMs }) => alignedUp(fromMs, lengthMs) >= nowMs - keptMs) ?? keptLevels[2];
}

function notKept({ name, keptText }: KeptLevel, beginMs: number, nowMs: number): PosthornError {
  const possible = keptLevels.find(({ keptMs }) => beginMs >= nowMs - keptMs);
  if (possible === undefined)
    return invalidParameter('from', `lies further back than the ${keptLevels[2].keptText} for which figures are kept`);
  const complaint = `is too small for this range: ${name} and its multiples are kept for ${keptText}; the smallest possible one is ${possible.name}`;
  return invalidParameter('step', complaint);
}
