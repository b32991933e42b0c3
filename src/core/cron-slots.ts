import { CronDate, CronExpression, type CronFieldCollection } from 'cron-parser';
import { LRUCache } from 'lru-cache';
import { parseCronExpression } from './cron-expression.ts';
import { isPosthornError } from './errors.ts';
import { canonicalTimeZone, isTimeZone } from './time-zone.ts';

const minuteMs = 60_000;
/** More than clocks are put forward or back, and less than what lies between two changes. */
const settleMs = 6 * 60 * minuteMs;

/**
 * The first time after `afterMs` at which a job of these fields runs, by the clocks of `zone`. Where they change, the rules are those of cron-parser
 * (docs/cron.md): a time that is skipped runs as much later as the clocks are put forward; one that comes again runs the second time only in
 * jobs of every hour. cron-parser finds the local times; with a zone it loses those of short gaps, finds some of two hours twice, and the answer
 * depends on where the search begins. Throws RangeError for what is no zone.
 */
export function nextCronSlot(fields: CronFieldCollection, zone: string, afterMs: number): number {
  const localAfter = (ms: number): number => new CronExpression(fields, { tz: 'UTC', currentDate: new Date(ms) }).next().getTime();
  const offsetAt = zoneOffsets(zone);
  let before = offsetAt(afterMs - settleMs);
  let local = localAfter(afterMs + before);
  for (let fromMs = afterMs; ; before = offsetAt(fromMs - settleMs)) {
    const slot = local - before;
    const minute = Math.floor(fromMs / minuteMs) * minuteMs;
    const changeMs = changeIn(offsetAt, minute - settleMs, Math.min(slot, minute + settleMs));
    if (changeMs === null) {
      if (slot <= fromMs + settleMs) return slot;
      fromMs = slot - settleMs;
      continue;
    }
    const after = offsetAt(changeMs);
    const againMs = fields.hour.values.length === 24 ? 0 : Math.max(0, before - after);
    local = localAfter(Math.max(fromMs, changeMs + againMs - 1) + after);
    const later = local - after;
    if (slot < changeMs + Math.max(0, after - before)) return Math.min(slot, later);
    if (later <= fromMs + settleMs) return later;
    fromMs = later - settleMs;
  }
}

/** The last slot after `afterMs` that is not after `untilMs`, null when there is none, and the one that follows. Meant for spans of minutes. */
export function cronSlotsAround(
  fields: CronFieldCollection,
  zone: string,
  afterMs: number,
  untilMs: number,
): { last: number | null; next: number } {
  let last: number | null = null;
  let next = nextCronSlot(fields, zone, afterMs);
  while (next <= untilMs) {
    last = next;
    next = nextCronSlot(fields, zone, next);
  }
  return { last, next };
}

/** A hundred bytes or so each; the least recently used ones go. */
const maxKept = 20_000;
/** Slots by schedule and zone, each the next one from `fromMs` on until it has come. */
const kept = new LRUCache<string, { fromMs: number; slotMs: number }>({ max: maxKept });

/** A schedule and its time zone, as a resource has them. */
interface Schedule {
  schedule: string;
  timeZone: string;
}

/** The first slot of a schedule after `afterMs`; null when schedule or zone is refused. */
export function nextSlotOf({ schedule, timeZone }: Schedule, afterMs: number): number | null {
  if (!isTimeZone(timeZone)) return null;
  try {
    return nextCronSlot(parseCronExpression(schedule), timeZone, afterMs);
  } catch (error) {
    if (isPosthornError(error, 'VALIDATION_FAILED')) return null;
    throw error;
  }
}

/** `nextSlotOf`, cached until the slot has come, for frequent reads of many jobs. */
export function keptNextCronSlot(schedule: Schedule, nowMs: number): number | null {
  const key = `${schedule.timeZone} ${schedule.schedule}`;
  const known = kept.get(key);
  if (known !== undefined && known.fromMs <= nowMs && nowMs < known.slotMs) return known.slotMs;
  const slotMs = nextSlotOf(schedule, nowMs);
  if (slotMs !== null) kept.set(key, { fromMs: nowMs, slotMs });
  return slotMs;
}

/** Many jobs use the same minutes. */
const maxOffsets = 5000;
const offsets = new LRUCache<string, number>({ max: maxOffsets });

/** Offset of the zone's clocks from UTC, in milliseconds. */
function zoneOffsets(zone: string): (ms: number) => number {
  const tz = canonicalTimeZone(zone);
  if (tz === null) throw new RangeError(`${zone} is not a time zone`);
  return (ms) => {
    const minute = Math.floor(ms / minuteMs);
    const key = `${tz} ${minute}`;
    const known = offsets.get(key);
    if (known !== undefined) return known;
    const offset = new CronDate(minute * minuteMs, tz).getUTCOffset() * minuteMs;
    offsets.set(key, offset);
    return offset;
  };
}

/** The minute, aligned as both ends are, after `lowMs` and not after `highMs` in which the clocks change; null when they do not. There is one at most. */
function changeIn(offsetAt: (ms: number) => number, lowMs: number, highMs: number): number | null {
  if (offsetAt(lowMs) === offsetAt(highMs)) return null;
  if (highMs - lowMs <= minuteMs) return highMs;
  const middleMs = lowMs + Math.ceil((highMs - lowMs) / minuteMs / 2) * minuteMs;
  return changeIn(offsetAt, lowMs, middleMs) ?? changeIn(offsetAt, middleMs, highMs);
}
