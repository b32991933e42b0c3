import { randomBytes } from 'node:crypto';
import { ExactNumber, jsonNumberPattern } from './exact-number.ts';
import { endOfJsonString, inexactNumbers } from './json-numbers.ts';
import { isBeforeColon, parsePlainJson } from './plain-json.ts';

/** The value of a JSON text, as `parseJson` reads it; undefined for a text that is no JSON. */
export function readJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Prefix of the position of a number in its stand-in string. Random, so that no text has it. */
const mark = randomBytes(9).toString('base64url');

/**
 * The value of a JSON text, as `JSON.parse` should but for numbers that are written differently than the double nearest to them: these are `ExactNumber`.
 * Throws SyntaxError.
 */
export function parseJson(text: string): unknown {
  // A text without digits, such as white space alone, has no numbers.
  const places = /\d/.test(text) ? inexactNumbers(text) : [];
  if (places.length === 0) return parsePlainJson(text);
  const pieces: string[] = [];
  let end = 0;
  for (let i = 0; i < places.length; i += 2) {
    const start = places[i] ?? 0;
    pieces.push(text.slice(end, start));
    end = places[i + 1] ?? 0;
    const written = text.slice(start, end);
    // A token that is no number, or is at a name, is no JSON: as a string it would be.
    pieces.push(jsonNumberPattern.test(written) && !isBeforeColon(text, end) ? `"${mark}${start}"` : written);
  }
  pieces.push(text.slice(end));
  const value: unknown = parsePlainJson(pieces.join(''));
  return withNumbers(value, text, places);
}

const [quote, comma, braceOpen, braceClose, bracketOpen, bracketClose] = [0x22, 0x2c, 0x7b, 0x7d, 0x5b, 0x5d];

/** A container of the text that is open, and in which of its members the text is. */
interface Open {
  /** Null: not searched for so far; undefined: it is not in the value, because a later member has its name. */
  container: object | null | undefined;
  isArray: boolean;
  index: number;
  keyStart: number;
  keyEnd: number;
}

/** `value` is that of the text, with marked strings for the numbers at `places`. */
function withNumbers(value: unknown, text: string, places: readonly number[]): unknown {
  const open: Open[] = [];
  let top: Open | undefined;
  let next = 0;
  for (let at = 0; next < places.length; at++) {
    if (at === places[next]) {
      const end = places[next + 1] ?? at;
      const number = text.slice(at, end);
      if (top === undefined) return new ExactNumber(number);
      put(containerOf(open, value, text), top, text, { number, at });
      next += 2;
      at = end - 1;
      continue;
    }
    switch (text.charCodeAt(at)) {
      case quote: {
        const end = endOfJsonString(text, at);
        if (top !== undefined) [top.keyStart, top.keyEnd] = [at, end + 1];
        at = end;
        break;
      }
      case comma:
        if (top !== undefined) top.index++;
        break;
      case braceOpen:
      case bracketOpen:
        top = { container: null, isArray: text.charCodeAt(at) === bracketOpen, index: 0, keyStart: 0, keyEnd: 0 };
        open.push(top);
        break;
      case braceClose:
      case bracketClose:
        open.pop();
        top = open.at(-1);
        break;
    }
  }
  return value;
}

/** The innermost open container; each is searched once. */
function containerOf(open: readonly Open[], root: unknown, text: string): object | undefined {
  let level = open.length;
  while (level > 0 && open[level - 1]?.container === null) level--;
  for (; level < open.length; level++) {
    const outer = open[level - 1];
    const found = outer === undefined ? root : outer.container && member(outer.container, outer, text);
    const each = open[level];
    if (each !== undefined) each.container = isOfKind(found, each) ? found : undefined;
  }
  return open.at(-1)?.container ?? undefined;
}

/** The found value may be a later member of the name. */
function isOfKind(found: unknown, { isArray }: Open): found is object {
  return typeof found === 'object' && found !== null && Array.isArray(found) === isArray;
}

function member(container: object, place: Open, text: string): unknown {
  if (Array.isArray(container)) return container[place.index];
  const name = nameOf(place, text);
  return Object.hasOwn(container, name) ? Reflect.get(container, name) : undefined;
}

function nameOf({ keyStart, keyEnd }: Open, text: string): string {
  return String(parsePlainJson(text.slice(keyStart, keyEnd)));
}

/** Puts the number in the place of its mark. The last of several members of one name counts, as `JSON.parse` has it. */
function put(container: object | undefined, place: Open, text: string, { number, at }: { number: string; at: number }): void {
  if (container === undefined) return;
  if (Array.isArray(container)) {
    if (container[place.index] === mark + at) container[place.index] = new ExactNumber(number);
    return;
  }
  const name = nameOf(place, text);
  if (!Object.hasOwn(container, name) || Reflect.get(container, name) !== mark + at) return;
  Object.defineProperty(container, name, { value: new ExactNumber(number), writable: true, enumerable: true, configurable: true });
}
