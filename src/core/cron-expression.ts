import { CronExpressionParser, type CronFieldCollection, CronMonth } from 'cron-parser';
import { PosthornError } from './errors.ts';

/** The five fields in order, each with its bounds. */
const cronFields = [
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day of month', min: 1, max: 31 },
  { name: 'month', min: 1, max: 12 },
  { name: 'day of week', min: 0, max: 6 },
] as const;
type Field = (typeof cronFields)[number];

const number = /^\d{1,2}$/;

/**
 * Reads five fields with spaces between, each `*`, a step from a star, or a list of numbers and ranges. cron-parser accepts more than that, and does not
 * name the field. VALIDATION_FAILED names the field that is anything else.
 */
export function parseCronExpression(text: string): CronFieldCollection {
  const parts = text.split(/ +/);
  if (parts.length !== cronFields.length || text.length > 256) {
    throw invalid('must have 5 fields with spaces between: minute, hour, day of month, month, day of week');
  }
  const values = cronFields.map((field, i) => valuesOf(parts[i] ?? '', field));
  const [, , day = '', month = '', weekday = ''] = parts;
  const [, , [firstDay = 1] = [], months = []] = values;
  if (weekday === '*' && !months.some((each) => firstDay <= (CronMonth.daysInMonth[each - 1] ?? 0))) {
    throw invalid(`day of month: no month of "${month}" has a day of "${day}"`);
  }
  // Each value once, as cron-parser requires. A star alone stays one: the two day fields unite only where neither is.
  return CronExpressionParser.parse(parts.map((part, i) => (part === '*' ? part : values[i]?.join(','))).join(' ')).fields;
}

/** The values that a field allows, in order. */
function valuesOf(text: string, field: Field): number[] {
  const { min, max } = field;
  const all = Array.from({ length: max - min + 1 }, (_, i) => min + i);
  if (text === '*') return all;
  const step = /^\*\/(\d{1,2})$/.exec(text)?.[1];
  if (step !== undefined) {
    const every = Number(step);
    if (every < 1 || every > max) throw invalid(`${field.name}: a step is a number from 1 to ${max}`);
    return all.filter((value) => (value - min) % every === 0);
  }
  const wanted = new Set(text.split(',').flatMap((member) => rangeOf(member, field)));
  return all.filter((value) => wanted.has(value));
}

function rangeOf(member: string, { name, min, max }: Field): number[] {
  const [first = '', last = first, ...more] = member.split('-');
  if (more.length > 0 || !number.test(first) || !number.test(last)) {
    throw invalid(`${name}: only *, */n, numbers, ranges such as 1-5, and lists of these with commas are possible`);
  }
  const [from, to] = [Number(first), Number(last)];
  if (from < min || to < min || from > max || to > max) throw invalid(`${name}: must be from ${min} to ${max}`);
  if (from > to) throw invalid(`${name}: the range ${member} ends before it begins`);
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

function invalid(message: string): PosthornError {
  return new PosthornError('VALIDATION_FAILED', message);
}
