/** RFC 3339, the time zone optional (UTC), or a date alone, also without hyphens. */
const time = /^(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2}:\d{2})(?::(\d{2})(?:\.(\d+))?)?(?:([Zz])|([+-]\d{2}):?(\d{2}))?)?$/;
const compactDate = /^\s*(\d{4})(\d{2})(\d{2})\s*$/;
const decimal = /^\s*([+-]?)(\d*)(?:\.(\d*))?\s*$/;
/** A decimal number, with an exponent or without. Its digits match in one way only: the time that it takes is in proportion to the text. */
export const numberText = /^\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s*$/;

/** Numbers count from 1970, in the unit in which they are of the years up to 5138. */
const units: readonly { until: number; digits: number }[] = [
  { until: 1e11, digits: 0 },
  { until: 1e14, digits: 3 },
  { until: 1e17, digits: 6 },
  { until: 1e20, digits: 9 },
];
const shownDigits = { fewest: 3, most: 9 };

/** RFC 3339 in UTC, with the fraction of the value up to nanoseconds; null for what is no time of the years 0 to 9999. */
export function toTimestamp(value: unknown): string | null {
  if (typeof value === 'number') return ofNumber(value, textOf(value));
  if (typeof value !== 'string') return null;
  return ofText(value.replace(compactDate, '$1-$2-$3')) ?? ofNumberText(value);
}

function ofText(text: string): string | null {
  const match = time.exec(text);
  if (match === null) return null;
  const [, date = '', minutes = '00:00', seconds = '00', fraction = '', , hours, offset] = match;
  const startMs = Date.parse(`${date}T00:00:00Z`);
  // Date.parse takes the 30th of February for the 2nd of March.
  if (Number.isNaN(startMs) || new Date(startMs).toISOString().slice(0, 10) !== date) return null;
  return shown(Date.parse(`${date}T${minutes}:${seconds}${hours === undefined ? 'Z' : `${hours}:${offset}`}`), fraction);
}

/** Its digits are those of the text: as a number they may have been too many. */
function ofNumberText(text: string): string | null {
  if (!numberText.test(text)) return null;
  return ofNumber(Number(text), decimal.test(text) ? text : textOf(Number(text)));
}

function textOf(number: number): string {
  const text = String(number);
  return text.includes('e') && Math.abs(number) < 1 ? number.toFixed(shownDigits.most) : text;
}

function ofNumber(number: number, text: string): string | null {
  const unit = units.find(({ until }) => Math.abs(number) < until);
  const match = decimal.exec(text);
  if (unit === undefined || match === null) return null;
  const [, sign = '', whole = '', fraction = ''] = match;
  const kept = fraction.slice(0, shownDigits.most);
  const places = kept.length + unit.digits;
  const digits = BigInt(`0${whole}${kept}`) * (sign === '-' ? -1n : 1n);
  const perSecond = 10n ** BigInt(places);
  const rest = ((digits % perSecond) + perSecond) % perSecond;
  return shown(Number((digits - rest) / perSecond) * 1000, places === 0 ? '' : String(rest).padStart(places, '0'));
}

function shown(ms: number, fraction: string): string | null {
  if (Number.isNaN(ms) || Math.abs(ms) > 8.64e15) return null;
  const text = new Date(ms).toISOString();
  if (!/^\d{4}-/.test(text)) return null;
  const digits = fraction.slice(0, shownDigits.most).replace(/0+$/, '').padEnd(shownDigits.fewest, '0');
  return `${text.slice(0, -'000Z'.length)}${digits}Z`;
}
