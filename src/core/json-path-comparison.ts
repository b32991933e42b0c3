import { compareNumbers, equalNumbers, isContainer, isJsonNumber } from './exact-number.ts';

/**
 * Whether a comparison of a JSONPath filter is met (RFC 9535, section 2.3.5.2.2). `undefined` is nothing. Numbers are compared with all of
 * their digits, also those in objects and lists.
 */
export function isComparisonMet(one: unknown, operator: string, other: unknown): boolean {
  switch (operator) {
    case '==':
      return isEqual(one, other);
    case '!=':
      return !isEqual(one, other);
    case '<':
      return isLess(one, other);
    case '>':
      return isLess(other, one);
    case '<=':
      return isLess(one, other) || isEqual(one, other);
    case '>=':
      return isLess(other, one) || isEqual(one, other);
    default:
      return false;
  }
}

function isLess(one: unknown, other: unknown): boolean {
  if (isJsonNumber(one) && isJsonNumber(other)) return compareNumbers(one, other) < 0;
  return typeof one === 'string' && typeof other === 'string' && isTextBefore(one, other);
}

/** By Unicode scalar values: surrogates represent those beyond all others. */
function isTextBefore(one: string, other: string): boolean {
  const shorter = Math.min(one.length, other.length);
  let at = 0;
  while (at < shorter && one.charCodeAt(at) === other.charCodeAt(at)) at++;
  if (at === shorter) return one.length < other.length;
  const [left, right] = [one.charCodeAt(at), other.charCodeAt(at)];
  if (isSurrogate(left) !== isSurrogate(right)) return isSurrogate(right);
  return left < right;
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}

function isEqual(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (isJsonNumber(one) && isJsonNumber(other)) return equalNumbers(one, other);
  if (!isContainer(one) || !isContainer(other)) return false;
  if (Array.isArray(one) || Array.isArray(other)) {
    return Array.isArray(one) && Array.isArray(other) && one.length === other.length && one.every((item, i) => isEqual(item, other[i]));
  }
  const members = Object.entries(one);
  return (
    members.length === Object.keys(other).length &&
    members.every(([name, value]) => Object.hasOwn(other, name) && isEqual(value, Reflect.get(other, name)))
  );
}
