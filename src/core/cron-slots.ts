import type { CronExpression } from './cron-expression.ts';
import { type ZoneDay, zoneDay, zoneOffsetMs } from './time-zone.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
/** Beyond this a change of the clocks is a correction, not daylight saving (crontab(5) of Vixie cron). */
const longestChangeMs = 3 * hourMs;
/** Between two 29th of February there are at most eight years; on one weekday, forty. */
const mostDays = 41 * 366;

/**
 * The first time after `afterMs` at which a job of this expression runs, by the clocks of `zone`; null when there is none. Where the
 * clocks change the rules are those of Vixie cron: a job that follows the clock does so; any other whose time is skipped runs
 * once right after the gap, and does not run a second time when an hour comes again.
 */
export function nextCronSlot(expression: CronExpression, zone: string, afterMs: number): number | null {
  const localMs = afterMs + zoneOffsetMs(zone, afterMs);
  // When the clocks go back at midnight, times of the day before come again.
  const firstDayMs = Math.floor(localMs / dayMs) * dayMs - dayMs;
  let best: number | null = null;
  for (let i = 0; i < mostDays; i++) {
    const localDayMs = firstDayMs + i * dayMs;
    if (!isDay(expression, localDayMs)) continue;
    const slot = firstSlotOf(expression, zoneDay(zone, localDayMs), localDayMs, afterMs);
    if (slot !== null && (best === null || slot < best)) best = slot;
    // The next day can begin before this one ends only by as much as the clocks change.
    if (best !== null && localDayMs + dayMs - zoneDay(zone, localDayMs).afterMs - longestChangeMs > best) return best;
  }
  return best;
}

/** The last slot after `afterMs` that is not after `untilMs`; null when there is none. Meant for spans of minutes. */
export function lastCronSlot(expression: CronExpression, zone: string, afterMs: number, untilMs: number): number | null {
  let last: number | null = null;
  for (let slot = nextCronSlot(expression, zone, afterMs); slot !== null && slot <= untilMs; ) {
    last = slot;
    slot = nextCronSlot(expression, zone, slot);
  }
  return last;
}

function isDay({ days, months, weekdays, needsBothDays }: CronExpression, localDayMs: number): boolean {
  const date = new Date(localDayMs);
  if (!months.has(date.getUTCMonth() + 1)) return false;
  const [isDayOfMonth, isWeekday] = [days.has(date.getUTCDate()), weekdays.has(date.getUTCDay())];
  return needsBothDays ? isDayOfMonth && isWeekday : isDayOfMonth || isWeekday;
}

function firstSlotOf(expression: CronExpression, day: ZoneDay, localDayMs: number, afterMs: number): number | null {
  const { minutes, hours } = expression;
  let first: number | null = null;
  for (const hour of hours) {
    if (first !== null && localDayMs + hour * hourMs - Math.max(day.beforeMs, day.afterMs) > first) break;
    // A whole hour that is past by any offset needs no look at its minutes.
    if (localDayMs + (hour + 1) * hourMs - Math.min(day.beforeMs, day.afterMs) + longestChangeMs <= afterMs) continue;
    for (const minute of minutes) {
      for (const slot of slotsAt(expression, day, localDayMs + hour * hourMs + minute * minuteMs)) {
        if (slot <= afterMs || (first !== null && slot >= first)) continue;
        first = slot;
        if (day.changeAtMs === null) return first;
      }
    }
  }
  return first;
}

/** When the clocks show `localMs`: once, twice, or never. */
function slotsAt({ followsClock }: CronExpression, { beforeMs, changeAtMs, afterMs }: ZoneDay, localMs: number): number[] {
  if (changeAtMs === null) return [localMs - beforeMs];
  const [early, late] = [localMs - beforeMs, localMs - afterMs];
  const isSmall = Math.abs(afterMs - beforeMs) <= longestChangeMs;
  if (early < changeAtMs && late >= changeAtMs) return followsClock || !isSmall ? [early, late] : [early];
  if (early < changeAtMs) return [early];
  if (late >= changeAtMs) return [late];
  return followsClock || !isSmall ? [] : [changeAtMs];
}
