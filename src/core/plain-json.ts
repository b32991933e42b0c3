import { randomBytes } from 'node:crypto';
import { endOfJsonString } from './json-numbers.ts';

/** Prefix of the number that replaces a name. Random, so that no text has it. */
const mark = randomBytes(9).toString('base64url');
const colon = 0x3a;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON has no others in strings
const needsEscape = /["\\\u0000-\u001f]/;

/**
 * Returns the value of a JSON text, as `JSON.parse` should. V8 does not always: it reads a member whose name has an escape under another name when an earlier
 * text, of whomever, had a name with a backslash behind the same members (https://github.com/nodejs/node/issues/63785). So names with escapes are not given
 * to it. A text without a backslash costs one search for it.
 *
 * Throws SyntaxError, and RangeError for more names with escapes than `maxEscapedNames`: each takes about two microseconds.
 */
// biome-ignore lint/suspicious/noExplicitAny: as JSON.parse, whose result callers check or give a type
export function parsePlainJson(text: string, maxEscapedNames = Number.POSITIVE_INFINITY): any {
  // Behind the last colon there are no names.
  const lastColon = text.lastIndexOf(':');
  const first = nextEscapedName(text, 0, lastColon);
  // A text that is no JSON throws here, so that every backslash of what follows is in a string.
  const value: unknown = JSON.parse(text);
  return first === null ? value : withNames(text, first, { lastColon, maxEscapedNames });
}

/** Returns whether a text is JSON. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

interface Name {
  /** Position of its opening quote. */
  start: number;
  /** Behind its closing quote. */
  end: number;
}

/** Returns the first name with an escape from `from` on, which is outside of strings, and before the last colon; null when there is none. */
function nextEscapedName(text: string, from: number, lastColon: number): Name | null {
  let end = from;
  for (let at = text.indexOf('\\', from); at >= 0 && at < lastColon; at = text.indexOf('\\', end)) {
    // No escape precedes this one in the string, so the next quote to the left begins it. Without one the text is no JSON.
    const start = text.lastIndexOf('"', at);
    if (start < end) return null;
    end = endOfJsonString(text, start) + 1;
    if (isBeforeColon(text, end)) return { start, end };
  }
  return null;
}

/** Returns whether a colon follows at `from`, behind white space. */
export function isBeforeColon(text: string, from: number): boolean {
  let at = from;
  while (text.charCodeAt(at) === 0x20 || text.charCodeAt(at) === 0x09 || text.charCodeAt(at) === 0x0a || text.charCodeAt(at) === 0x0d) at++;
  return text.charCodeAt(at) === colon;
}

/** Reads a text that is JSON, with other names in place of those that have escapes. `first`: the first of these. */
function withNames(text: string, first: Name, { lastColon, maxEscapedNames }: { lastColon: number; maxEscapedNames: number }): unknown {
  const numbers = new Map<string, number>();
  const names: string[] = [];
  let written = '';
  let end = 0;
  let escaped = 0;
  for (let place: Name | null = first; place !== null; place = nextEscapedName(text, place.end, lastColon)) {
    const name = decoded(text.slice(place.start + 1, place.end - 1));
    let standIn = name;
    if (needsEscape.test(name)) {
      // A repeated name has one stand-in, so that the last member of it counts.
      let number = numbers.get(name);
      if (number === undefined) {
        number = names.push(name) - 1;
        numbers.set(name, number);
      }
      standIn = mark + number;
    }
    written += `${text.slice(end, place.start)}"${standIn}"`;
    end = place.end;
    if (++escaped > maxEscapedNames) throw new RangeError(`more than ${maxEscapedNames} names have escapes`);
  }
  const value: unknown = JSON.parse(written + text.slice(end));
  return names.length === 0 ? value : renamed(value, names);
}

const shortEscapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' };

/** Returns the value of a well-formed JSON string, without its quotes. */
function decoded(content: string): string {
  let text = '';
  let end = 0;
  for (let at = content.indexOf('\\'); at >= 0; at = content.indexOf('\\', end)) {
    const letter = content[at + 1] ?? '';
    text += content.slice(end, at);
    end = letter === 'u' ? at + 6 : at + 2;
    text += letter === 'u' ? String.fromCharCode(Number.parseInt(content.slice(at + 2, end), 16)) : (shortEscapes[letter] ?? letter);
  }
  return text + content.slice(end);
}

/** Returns the value with members under their own names, in their order. */
function renamed(value: unknown, names: readonly string[]): unknown {
  const root = withOwnNames(value, names);
  const left = [root];
  while (left.length > 0) {
    const each = left.pop();
    if (typeof each !== 'object' || each === null) continue;
    for (const name of Object.keys(each)) {
      const member: unknown = Reflect.get(each, name);
      if (typeof member !== 'object' || member === null) continue;
      const own = withOwnNames(member, names);
      if (own !== member) defineMember(each, name, own);
      left.push(own);
    }
  }
  return root;
}

/** Returns a copy of an object that has stand-ins, with the names restored; the same of all else. Members of members stay. */
function withOwnNames(value: unknown, names: readonly string[]): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const keys = Object.keys(value);
  if (!keys.some((key) => key.startsWith(mark))) return value;
  const copy: Record<string, unknown> = {};
  for (const key of keys) {
    const name = key.startsWith(mark) ? (names[Number(key.slice(mark.length))] ?? key) : key;
    const member: unknown = Reflect.get(value, key);
    if (name === '__proto__') defineMember(copy, name, member);
    else copy[name] = member;
  }
  return copy;
}

/** Also of the name `__proto__`, which an assignment does not make a member of. */
function defineMember(object: object, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}
