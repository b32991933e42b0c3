const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const time = String.raw`(?<hour>[01]\d|2[0-3]):(?<minute>[0-5]\d):(?<second>[0-5]\d|60)`;
const zone = '(?:GMT|UTC|[+-]0000)';

/** The three forms of RFC 9110, section 5.6.7. A day of the week that does not fit is no reason to refuse the date. */
const forms = [
  String.raw`[a-z]{3}, (?<day>\d{2}) (?<month>[a-z]{3}) (?<year>\d{4}) ${time} ${zone}`,
  String.raw`[a-z]{6,9}, (?<day>\d{2})-(?<month>[a-z]{3})-(?<year>\d{2}) ${time} ${zone}`,
  String.raw`[a-z]{3} (?<month>[a-z]{3}) (?<day>[ \d]\d) ${time} (?<year>\d{4})`,
].map((form) => new RegExp(`^${form}$`, 'i'));
const withOffset = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/;

/**
 * Milliseconds since the epoch of an HTTP date, in whichever time zone the process runs: all forms are in UTC, also that of asctime, which names no zone. RFC
 * 3339 with an offset is taken, too. Null for any other text. `nowMs` settles the century of a year of two digits: at most 50 years lie ahead.
 */
export function httpDateMs(text: string, nowMs: number): number | null {
  if (withOffset.test(text)) {
    const ms = Date.parse(text);
    return Number.isNaN(ms) ? null : ms;
  }
  for (const form of forms) {
    const groups = form.exec(text)?.groups;
    if (groups !== undefined) return utcMs(groups, new Date(nowMs).getUTCFullYear());
  }
  return null;
}

function utcMs(
  { year = '', month = '', day = '', hour = '', minute = '', second = '' }: Record<string, string>,
  thisYear: number,
): number | null {
  const fullYear = year.length === 2 ? yearOfTwoDigits(Number(year), thisYear) : Number(year);
  const midnightMs = Date.UTC(fullYear, months.indexOf(month.toLowerCase()), Number(day));
  const date = new Date(midnightMs);
  const exists =
    date.getUTCFullYear() === fullYear && date.getUTCDate() === Number(day) && months[date.getUTCMonth()] === month.toLowerCase();
  return exists ? midnightMs + ((Number(hour) * 60 + Number(minute)) * 60 + Number(second)) * 1000 : null;
}

function yearOfTwoDigits(year: number, thisYear: number): number {
  const inThisCentury = thisYear - (thisYear % 100) + year;
  const latest = thisYear + 50;
  const next = inThisCentury + 100;
  if (next <= latest) return next;
  return inThisCentury > latest ? inThisCentury - 100 : inThisCentury;
}
