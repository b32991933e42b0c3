import { createHash } from 'node:crypto';
import { ExactNumber } from './exact-number.ts';

/** JSON text with the keys of every object sorted, so that equal values have equal texts; numbers keep their spelling. `undefined` members are left out. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) => withSortedKeys(member));
}

const tooLong = new RangeError('too long');

/** The same of what `parseJson` returned; null when it has more bytes in UTF-8, which is found out before much more than those are written. */
export function canonicalJsonWithin(value: unknown, maxBytes: number): string | null {
  let left = maxBytes;
  try {
    const text = JSON.stringify(value, (_key, member: unknown) => {
      left -= leastBytes(member);
      if (left < 0) throw tooLong;
      return withSortedKeys(member);
    });
    return Buffer.byteLength(text) > maxBytes ? null : text;
  } catch (error) {
    if (error === tooLong) return null;
    throw error;
  }
}

/** Returns the least bytes that are written for a value without its members: for those of an object at least `"":` and what separates them. */
function leastBytes(value: unknown): number {
  if (typeof value === 'string') return value.length;
  return typeof value !== 'object' || value === null || Array.isArray(value) || JSON.isRawJSON(value)
    ? 1
    : 1 + 4 * Object.keys(value).length;
}

function withSortedKeys(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || JSON.isRawJSON(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}

const piece = 2000;
const textPiece = 64 * 1024;

/** SHA-256, in hexadecimal, of the canonical JSON of what `parseJson` returned, in pieces: yields between them. */
export function* canonicalDigest(value: unknown): Generator<undefined, string> {
  const hash = createHash('sha256');
  let text = '';
  let members = 0;

  const write = function* (part: unknown): Generator<undefined, void> {
    if (++members % piece === 0) yield;
    if (text.length > textPiece) {
      hash.update(text);
      text = '';
    }
    if (part instanceof ExactNumber) text += part.text;
    else if (Array.isArray(part)) {
      text += '[';
      for (const [i, item] of part.entries()) {
        if (i > 0) text += ',';
        yield* write(item);
      }
      text += ']';
    } else if (typeof part === 'object' && part !== null) {
      text += '{';
      let separator = '';
      for (const key of yield* sorted(Object.keys(part))) {
        text += `${separator}${JSON.stringify(key)}:`;
        separator = ',';
        yield* write(Object.getOwnPropertyDescriptor(part, key)?.value);
      }
      text += '}';
    } else text += JSON.stringify(part);
  };

  yield* write(value);
  return hash.update(text).digest('hex');
}

const arrayIndex = /^(?:0|[1-9]\d{0,9})$/;

/** The order of the members of an object that was made with sorted keys: numbers come first. */
function byPlace(one: string, other: string): number {
  const isFirst = isIndex(one);
  if (isFirst !== isIndex(other)) return isFirst ? -1 : 1;
  if (isFirst) return Number(one) - Number(other);
  return one < other ? -1 : 1;
}

function isIndex(key: string): boolean {
  return arrayIndex.test(key) && Number(key) < 2 ** 32 - 1;
}

/** Merge sort: of very many keys one sort would be too long a piece. */
function* sorted(keys: string[]): Generator<undefined, string[]> {
  if (keys.length <= piece) return keys.sort(byPlace);
  const half = keys.length >> 1;
  const left = yield* sorted(keys.slice(0, half));
  const right = yield* sorted(keys.slice(half));
  yield;
  const merged: string[] = [];
  let [i, j] = [0, 0];
  while (merged.length < keys.length) {
    const [one, other] = [left[i], right[j]];
    if (one !== undefined && (other === undefined || byPlace(one, other) <= 0)) {
      merged.push(one);
      i++;
    } else if (other !== undefined) {
      merged.push(other);
      j++;
    }
    if (merged.length % piece === 0) yield;
  }
  return merged;
}
