import { z } from 'zod';

/**
 * A string of `min` to `max` characters. Code points are counted, as the API server does; zod's own bounds would count
 * UTF-16 units and refuse what the server accepts.
 */
export function text(min: number, max: number): z.ZodString {
  return (
    z
      .string()
      .meta({ ...(min > 0 && { minLength: min }), maxLength: max })
      .refine((value) => value.length >= 2 * min || characters(value) >= min, {
        error: min === 1 ? 'must not be empty' : `must be at least ${min} characters long`,
      })
      // No pattern sees a longer text: one of 1 MB takes hours with a pattern that backtracks.
      // A character has at most two units: of what is far too long none is counted.
      .refine((value) => value.length <= max || (value.length <= 2 * max && characters(value) <= max), {
        error: `must be at most ${max} characters long`,
        abort: true,
      })
  );
}

/** C0, DEL and C1, as ranges of a class. */
export const controls = String.raw`\x00-\x1f\x7f-\x9f`;
const controlsInParagraphs = String.raw`\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f`;

/** A `text` of one line, such as a name. */
export function line(min: number, max: number): z.ZodString {
  return text(min, max).regex(new RegExp(`^[^${controls}]*$`), 'must have no control characters or line breaks');
}

/** A `line` that is more than blanks. One pattern: two of them are an `allOf`, which is harder to read and to make values from. */
export function filledLine(max: number): z.ZodString {
  const pattern = new RegExp(`^[^${controls}]*[^\\s${controls}][^${controls}]*$`);
  return text(1, max).regex(pattern, 'must not be blank, and have no control characters or line breaks');
}

/** A `text` for people to read, of one line or several. */
export function paragraph(min: number, max: number): z.ZodString {
  return text(min, max).regex(new RegExp(`^[^${controlsInParagraphs}]*$`), 'must have no control characters but tabs and line breaks');
}

/** Length in code points. */
export function characters(value: string): number {
  let count = 0;
  for (const _ of value) count++;
  return count;
}

const dateTimePattern = /^(\d{4}-\d{2}-\d{2})T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

/** RFC 3339 date and time; the day must exist. */
export const dateTime = text(20, 35)
  .regex(dateTimePattern, 'must be a time such as 2026-01-31T12:00:00Z')
  .refine((value) => dayExists(value.slice(0, 10)), { error: 'must be a day that exists' })
  .meta({ format: 'date-time' });

/** Nanoseconds since the epoch of a `dateTime`. */
export function nanosecondsOf(value: string): bigint {
  const fraction = dateTimePattern.exec(value)?.[3] ?? '';
  const seconds = BigInt(Date.parse(value.replace(fraction, '')) / 1000);
  return seconds * 1_000_000_000n + BigInt(fraction.slice(1).padEnd(9, '0'));
}

function dayExists(day: string): boolean {
  const [year = 0, month = 0, date = 0] = day.split('-').map(Number);
  if (month < 1 || month > 12) return false;
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  return date >= 1 && date <= ([31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0);
}
