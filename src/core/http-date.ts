const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const time = String.raw`(?<hour>[01]\d|2[0-3]):(?<minute>[0-5]\d):(?<second>[0-5]\d|60)`;
const offset = '(?<sign>[+-])(?<offsetHour>[01]\\d|2[0-3]):?(?<offsetMinute>[0-5]\\d)';
const zone = `(?:(?:GMT|UTC|UT|Z)(?! *[+-])|${offset})`;
const day = String.raw`(?<day>[ \d]?\d)`;
const month = '(?<month>[a-z]{3})';
const year = String.raw`(?<year>\d{4})`;

/** The three forms of RFC 9110, section 5.6.7, as senders vary them. A day of the week that does not fit is no reason to refuse the date. */
const forms = [
  // RFC 1123 and RFC 850, also without a day of the week, with a day of one digit and with an offset, as RFC 5322 has it.
  String.raw`(?:[a-z]{3,9}, *)?${day}[ -]${month}[ -](?<year>\d{4}|\d{2}) ${time} ${zone}`,
  // asctime, also with the zone that date and Java write.
  `[a-z]{3} ${month} ${day} ${time}(?: ${zone})? ${year}`,
  // JavaScript.
  String.raw`[a-z]{3} ${month} ${day} ${year} ${time} (?:GMT|UTC)${offset}(?: \([^()]*\))?`,
].map((form) => new RegExp(`^${form}$`, 'i'));
const rfc3339 = /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?)(?:[Zz]|([+-]\d{2}):?(\d{2}))$/;

/**
 * Milliseconds since the epoch of an HTTP date, in whichever time zone the process runs: what names no zone, as asctime, is in UTC. Forms that are near to
 * those of HTTP, and RFC 3339 with an offset, are taken, too. Null for any other text. `nowMs` settles the century of a year of two digits: at most 50 years lie ahead.
 */
export function httpDateMs(text: string, nowMs: number): number | null {
  const written = rfc3339.exec(text);
  if (written !== null) {
    const [, date, clock, hours, minutes] = written;
    const ms = Date.parse(`${date}T${clock}${hours === undefined ? 'Z' : `${hours}:${minutes}`}`);
    return Number.isNaN(ms) ? null : ms;
  }
  for (const form of forms) {
    const groups = form.exec(text)?.groups;
    if (groups !== undefined) return utcMs(groups, new Date(nowMs).getUTCFullYear());
  }
  return null;
}

function utcMs(parts: Record<string, string | undefined>, thisYear: number): number | null {
  const { year = '', month = '', hour, minute, second, sign, offsetHour = 0, offsetMinute = 0 } = parts;
  const day = Number(parts['day']);
  const fullYear = year.length === 2 ? yearOfTwoDigits(Number(year), thisYear) : Number(year);
  const midnightMs = Date.UTC(fullYear, months.indexOf(month.toLowerCase()), day);
  const date = new Date(midnightMs);
  const exists = date.getUTCFullYear() === fullYear && date.getUTCDate() === day && months[date.getUTCMonth()] === month.toLowerCase();
  if (!exists) return null;
  const offsetMinutes = (Number(offsetHour) * 60 + Number(offsetMinute)) * (sign === '-' ? -1 : 1);
  return midnightMs + ((Number(hour) * 60 + Number(minute) - offsetMinutes) * 60 + Number(second)) * 1000;
}

function yearOfTwoDigits(year: number, thisYear: number): number {
  const inThisCentury = thisYear - (thisYear % 100) + year;
  const latest = thisYear + 50;
  const next = inThisCentury + 100;
  if (next <= latest) return next;
  return inThisCentury > latest ? inThisCentury - 100 : inThisCentury;
}
