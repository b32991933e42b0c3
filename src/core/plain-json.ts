import { randomBytes } from 'node:crypto';
import { endOfJsonString } from './json-numbers.ts';

/** What stands before the number of a name while that stands for it. Random, so that no text has it. */
const mark = randomBytes(9).toString('base64url');
const needsEscape = /["\\\p{Cc}]/u;

/**
 * Returns what a JSON text says, as `JSON.parse` should. V8 does not always: it reads a member whose name has an escape under another name when an earlier
 * text, of whomever, had a name with a backslash behind the same members (https://github.com/nodejs/node/issues/63785). So names with escapes are not given
 * to it. A text without a backslash costs one search for it.
 *
 * Throws SyntaxError.
 */
// biome-ignore lint/suspicious/noExplicitAny: as JSON.parse, whose result callers check or give a type
export function parsePlainJson(text: string): any {
  const first = nextEscapedName(text, 0);
  // A text that is no JSON throws here, so that every backslash of what follows is in a string.
  const value: unknown = JSON.parse(text);
  return first === null ? value : withNames(text, first);
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
  /** Of its opening quote. */
  start: number;
  /** Behind its closing quote. */
  end: number;
}

/** Returns the first name with an escape from `from` on, which is outside of strings; null when there is none. */
function nextEscapedName(text: string, from: number): Name | null {
  let end = from;
  for (let at = text.indexOf('\\', from); at >= 0; at = text.indexOf('\\', end)) {
    // No escape stands before this one in the string, so the next quote to the left begins it. Without one the text is no JSON.
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
  while (/[ \t\n\r]/.test(text[at] ?? '')) at++;
  return text[at] === ':';
}

/** Reads a text that is JSON, with other names in place of those that have escapes. `first`: the first of these. */
function withNames(text: string, first: Name): unknown {
  const pieces: string[] = [];
  const standIns = new Map<string, string>();
  let end = 0;
  for (let name: Name | null = first; name !== null; name = nextEscapedName(text, name.end)) {
    const written = String(JSON.parse(text.slice(name.start, name.end)));
    pieces.push(text.slice(end, name.start), `"${needsEscape.test(written) ? standInOf(written, standIns) : written}"`);
    end = name.end;
  }
  pieces.push(text.slice(end));
  const value: unknown = JSON.parse(pieces.join(''));
  if (standIns.size > 0) rename(value, new Map([...standIns].map(([name, standIn]) => [standIn, name])));
  return value;
}

/** A name that comes again has one stand-in, so that the last member of it counts. */
function standInOf(name: string, standIns: Map<string, string>): string {
  const standIn = standIns.get(name) ?? `${mark}${standIns.size}`;
  standIns.set(name, standIn);
  return standIn;
}

/** Gives members their names back, in their order. */
function rename(value: unknown, names: ReadonlyMap<string, string>): void {
  const left = [value];
  while (left.length > 0) {
    const each = left.pop();
    if (typeof each !== 'object' || each === null) continue;
    const entries = Object.entries(each);
    for (const [, member] of entries) left.push(member);
    if (Array.isArray(each) || !entries.some(([name]) => names.has(name))) continue;
    for (const [name] of entries) Reflect.deleteProperty(each, name);
    for (const [name, member] of entries)
      Object.defineProperty(each, names.get(name) ?? name, { value: member, writable: true, enumerable: true, configurable: true });
  }
}
