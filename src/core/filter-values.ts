import { compareNumbers, equalNumbers, isContainer, isJsonNumber, type JsonNumber, jsonNumber, jsonNumberPattern } from './exact-number.ts';

/** Characters. A longer text is no number: reading it again for each of many values would cost more than the values. */
const maxNumberLength = 400;

/**
 * Test for JSON values equal to `value`: deeply, without regard to the order of keys. A number or boolean also equals the
 * string that writes it (5 and "5", true and "true"), because headers and form fields have only strings. Numbers are equal when they have the same
 * value as they are written, however many digits that takes. The test costs no more than `value` and the
 * tested value are large, however often the same object is tested.
 */
export function equalTo(value: unknown): (actual: unknown) => boolean {
  if (typeof value !== 'string') return (actual) => isEqual(actual, value);
  const decimal = decimalOf(value);
  return (actual) => {
    if (actual === value) return true;
    if (typeof actual === 'boolean') return String(actual) === value;
    return decimal !== null && isJsonNumber(actual) && equalNumbers(actual, decimal);
  };
}

function isEqual(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one === 'string') return isTextOf(one, other);
  if (typeof other === 'string') return isTextOf(other, one);
  if (isJsonNumber(one) || isJsonNumber(other)) return isJsonNumber(one) && isJsonNumber(other) && equalNumbers(one, other);
  if (!isContainer(one) || !isContainer(other)) return false;
  if (Array.isArray(one) || Array.isArray(other)) {
    return Array.isArray(one) && Array.isArray(other) && one.length === other.length && one.every((item, i) => isEqual(item, other[i]));
  }
  if (memberCount(one) !== memberCount(other)) return false;
  return Object.entries(other).every(([key, item]) => Object.hasOwn(one, key) && isEqual(Reflect.get(one, key), item));
}

const memberCounts = new WeakMap<object, number>();

/** Counted once for each object: a filter compares one object of the payload with up to 50,000 values. */
function memberCount(value: object): number {
  const known = memberCounts.get(value);
  if (known !== undefined) return known;
  const count = Object.keys(value).length;
  memberCounts.set(value, count);
  return count;
}

function isTextOf(text: string, value: unknown): boolean {
  if (isJsonNumber(value)) {
    const decimal = decimalOf(text);
    return decimal !== null && equalNumbers(decimal, value);
  }
  return typeof value === 'boolean' && text === String(value);
}

/**
 * Order of two values: negative, 0 or positive; null when they have none. Numbers, and strings that write a JSON number,
 * by size; two other strings by code units, which orders ISO 8601 times of one form.
 */
export function compare(one: unknown, other: unknown): number | null {
  const [oneNumber, otherNumber] = [decimalOf(one), decimalOf(other)];
  if (oneNumber !== null && otherNumber !== null) return compareNumbers(oneNumber, otherNumber);
  if (typeof one !== 'string' || typeof other !== 'string') return null;
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

function decimalOf(value: unknown): JsonNumber | null {
  if (isJsonNumber(value)) return value;
  return typeof value === 'string' && value.length <= maxNumberLength && jsonNumberPattern.test(value) ? jsonNumber(value) : null;
}

/** The text for text operators: a string, or the JSON spelling of a number or boolean, of a number all that was written; null for anything else. */
export function textOf(value: unknown): string | null {
  if (typeof value === 'string') return value;
  return isJsonNumber(value) || typeof value === 'boolean' ? String(value) : null;
}
