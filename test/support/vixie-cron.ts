/**
 * When Vixie cron (ISC cron 4.1, `cron.c`) would run a job, by acting as the daemon minute by minute: it compares the clock with a virtual
 * time, which catches up with jumps of the clock. Shares nothing with what it judges.
 */
export interface VixieOptions {
  expression: string;
  zone: string;
  fromMs: number;
  toMs: number;
}

const minuteMs = 60_000;
const medium = 180;
const small = 5;

/** Whole minutes from `fromMs` on, before `toMs`, in which the job runs, once or more often. */
export function vixieMinutes({ expression, zone, fromMs, toMs }: VixieOptions): number[] {
  const job = read(expression);
  const offset = offsets(zone);
  const ran: number[] = [];
  let virtual = (fromMs - minuteMs + offset(fromMs - minuteMs)) / minuteMs;
  for (let ms = fromMs; ms < toMs; ms += minuteMs) {
    const running = (ms + offset(ms)) / minuteMs;
    const ahead = running - virtual;
    let runs = false;
    const find = (minute: number, { wild, fixed }: { wild: boolean; fixed: boolean }): void => {
      if ((job.isWild ? wild : fixed) && job.matches(minute)) runs = true;
    };
    if (ahead > 0 && ahead <= small) while (virtual < running) find(++virtual, { wild: true, fixed: true });
    else if (ahead > 0 && ahead <= medium) {
      find(running, { wild: true, fixed: false });
      while (virtual < running) find(++virtual, { wild: false, fixed: true });
    } else if (ahead <= 0 && ahead > -medium) find(running, { wild: true, fixed: false });
    else {
      virtual = running;
      find(virtual, { wild: true, fixed: true });
    }
    if (runs) ran.push(ms);
  }
  return ran;
}

/** `isWild`: MIN_STAR or HR_STAR. `matches` is given the local time in minutes, as if it were UTC. */
function read(expression: string): { isWild: boolean; matches: (localMinute: number) => boolean } {
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = expression.split(' ');
  const [minutes, hours, days, months, weekdays] = [
    valuesOf(minute, 0),
    valuesOf(hour, 0),
    valuesOf(day, 1),
    valuesOf(month, 1),
    valuesOf(weekday, 0),
  ];
  const needsBothDays = day === '*' || weekday === '*';
  return {
    isWild: minute.startsWith('*') || hour.startsWith('*'),
    matches: (localMinute) => {
      if (!minutes.has(localMinute % 60) || !hours.has(Math.floor(localMinute / 60) % 24)) return false;
      const local = new Date(localMinute * minuteMs);
      if (!months.has(local.getUTCMonth() + 1)) return false;
      const [isDay, isWeekday] = [days.has(local.getUTCDate()), weekdays.has(local.getUTCDay())];
      return needsBothDays ? isDay && isWeekday : isDay || isWeekday;
    },
  };
}

function valuesOf(field: string, first: number): Set<number> {
  const values = new Set<number>();
  for (const part of field.split(',')) {
    const [range = '', step = '1'] = part.split('/');
    const [from = 0, to = from] = range === '*' ? [first, 59] : range.split('-').map(Number);
    for (let value = from; value <= to; value += Number(step)) values.add(value);
  }
  return values;
}

/** What the clocks show more than UTC, as the runtime names it (`GMT+05:30`), looked up once per quarter of an hour. */
function offsets(zone: string): (ms: number) => number {
  const format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
  const known = new Map<number, number>();
  return (ms) => {
    const quarter = Math.floor(ms / 900_000);
    const before = known.get(quarter);
    if (before !== undefined) return before;
    const name = format.formatToParts(quarter * 900_000).find(({ type }) => type === 'timeZoneName')?.value ?? '';
    const [, sign = '+', hours = '0', minutes = '0'] = /^GMT(?:([+-])(\d+):(\d+))?$/.exec(name) ?? [];
    const offset = (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * minuteMs;
    known.set(quarter, offset);
    return offset;
  };
}

/** The quarters of an hour in which the clocks of the zone change. */
export function clockChanges(zone: string, fromMs: number, toMs: number): number[] {
  const offset = offsets(zone);
  const found: number[] = [];
  for (let ms = fromMs; ms < toMs; ms += 3_600_000) {
    if (offset(ms) === offset(ms + 3_600_000)) continue;
    let at = ms;
    while (offset(at) === offset(ms)) at += 900_000;
    found.push(at);
  }
  return found;
}
