/** When a job runs, by a check of the clock in each minute (docs/cron.md, "Schedule"). Shares nothing with what it tests. */
export interface CronMinutes {
  expression: string;
  zone: string;
  fromMs: number;
  toMs: number;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const quarterMs = 15 * minuteMs;

/** Whole minutes from `fromMs` on, before `toMs`, in which the job runs. */
export function minutesOfCron({ expression, zone, fromMs, toMs }: CronMinutes): number[] {
  const { matches, isOfEveryHour } = read(expression);
  const clock = clockOf(zone);
  const changes = clockChanges(zone, fromMs - 24 * hourMs, toMs).map((atMs) => ({
    atMs,
    forwardMs: clock(atMs) - clock(atMs - minuteMs) - minuteMs,
  }));
  const found: number[] = [];
  for (let ms = fromMs; ms < toMs; ms += minuteMs) {
    const change = changes.find(({ atMs, forwardMs }) => ms >= atMs && ms < atMs + Math.abs(forwardMs));
    const comesAgain = change !== undefined && change.forwardMs < 0;
    const skipped = change !== undefined && change.forwardMs > 0 ? clock(ms) - change.forwardMs : null;
    if ((matches(clock(ms)) && (!comesAgain || isOfEveryHour)) || (skipped !== null && matches(skipped))) found.push(ms);
  }
  return found;
}

/** The same by the runtime's own clock of each minute, without any rule for changes: for days on which there are none. */
export function minutesOfOrdinaryDays({ expression, zone, fromMs, toMs }: CronMinutes): number[] {
  const { matches } = read(expression);
  const format = formatOf(zone);
  const found: number[] = [];
  for (let ms = fromMs; ms < toMs; ms += minuteMs) if (matches(shown(format, ms))) found.push(ms);
  return found;
}

/** When the clocks of the zone change; on a quarter of an hour. */
export function clockChanges(zone: string, fromMs: number, toMs: number): number[] {
  const clock = clockOf(zone);
  const found: number[] = [];
  for (let ms = fromMs; ms < toMs; ms += hourMs) {
    if (clock(ms + hourMs) - clock(ms) === hourMs) continue;
    let at = Math.floor(ms / quarterMs) * quarterMs;
    while (clock(at) - at === clock(ms) - ms) at += quarterMs;
    found.push(at);
  }
  return found;
}

/** `matches` is given what the clock shows, as if it were UTC. */
function read(expression: string): { matches: (localMs: number) => boolean; isOfEveryHour: boolean } {
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = expression.split(' ');
  const [minutes, hours, days, months, weekdays] = [
    valuesOf(minute, 0, 59),
    valuesOf(hour, 0, 23),
    valuesOf(day, 1, 31),
    valuesOf(month, 1, 12),
    valuesOf(weekday, 0, 6),
  ];
  const needsBothDays = day === '*' || weekday === '*';
  return {
    matches: (localMs) => {
      const local = new Date(localMs);
      if (!minutes.has(local.getUTCMinutes()) || !hours.has(local.getUTCHours()) || !months.has(local.getUTCMonth() + 1)) return false;
      const [isDay, isWeekday] = [days.has(local.getUTCDate()), weekdays.has(local.getUTCDay())];
      return needsBothDays ? isDay && isWeekday : isDay || isWeekday;
    },
    isOfEveryHour: hours.size === 24,
  };
}

function valuesOf(field: string, first: number, last: number): Set<number> {
  const values = new Set<number>();
  for (const part of field.split(',')) {
    const [range = '', step = '1'] = part.split('/');
    const [from = 0, to = from] = range === '*' ? [first, last] : range.split('-').map(Number);
    for (let value = from; value <= to; value += Number(step)) values.add(value);
  }
  return values;
}

/** What the clock of the zone shows, as if it were UTC; read once per quarter of an hour. */
function clockOf(zone: string): (ms: number) => number {
  const format = formatOf(zone);
  const offsets = new Map<number, number>();
  return (ms) => {
    const quarter = Math.floor(ms / quarterMs);
    let offset = offsets.get(quarter);
    if (offset === undefined) {
      offset = shown(format, quarter * quarterMs) - quarter * quarterMs;
      offsets.set(quarter, offset);
    }
    return ms + offset;
  };
}

const formatOf = (zone: string): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' });
const shown = (format: Intl.DateTimeFormat, ms: number): number => Date.parse(`${format.format(ms).replace(' ', 'T')}Z`);
