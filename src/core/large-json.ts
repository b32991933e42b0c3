import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import { isContainer } from './exact-number.ts';
import { closingQuote } from './json-scan.ts';
import { payloadText } from './payload-text.ts';
import { parsePlainJson } from './plain-json.ts';
import { parseJson } from './read-json.ts';

const [quote, comma] = [0x22, 0x2c];
const [braceOpen, braceClose, bracketOpen, bracketClose] = [0x7b, 0x7d, 0x5b, 0x5d];
const defaultPieceBytes = 64 * 1024;
/** Where nothing can be cut. */
const scannedBytes = 256 * 1024;
/** More levels are refused: each piece opens again all that are open. */
const maxNesting = 1000;
/** A larger object takes too long where its table of members grows. A text of 1 MiB has none. */
const growableMembers = 200_000;

class RefusedPartError extends Error {
  /** Where the part is, from the outermost value on: its first hundred steps. */
  readonly path: readonly PropertyKey[];

  constructor(message: string, path: readonly PropertyKey[] = []) {
    super(message);
    this.path = path;
  }
}

/** The text is JSON so far, and is nested deeper than 1000 levels. */
export class TooDeepError extends RefusedPartError {}

/** The text is JSON so far, and an object or list in it has more members than are allowed. */
export class TooManyMembersError extends RefusedPartError {}

export interface LargeJsonOptions {
  /** Bytes that are read at a time. */
  pieceBytes?: number;
  /** Most members of an object or list; going through one with more would be too long a piece of work. */
  maxMembers?: number;
  /** Most members of an object, at any depth; at most 200,000, which is the default. */
  maxObjectMembers?: number;
  /** Member of the outermost object in which any number is allowed, but for `maxObjectMembers`. */
  freeField?: string | undefined;
}

type Container = unknown[] | Record<string, unknown>;

/** A container that is open. `keyStart`, `keyEnd`: the position of its key, when it is a member of an object. */
interface Open {
  isArray: boolean;
  /** In the free field. */
  isFree: boolean;
  keyStart: number;
  keyEnd: number;
  commas: number;
  maxMembers: number;
}

/** A larger payload takes too long to be parsed in one turn of the event loop. */
export const wholeJsonBytes = defaultPieceBytes;

/** Most names with escapes in a payload that is read at once: more would take too long. */
const maxEscapedNamesAtOnce = 20_000;

/**
 * The value of a large payload, as `readJson` reads its text; undefined for one that is no JSON, and for one that is read at once and has more than
 * 20,000 names with escapes. Yields between pieces. One that is nested deeper or has more
 * members than chunked reading supports is read at once, and its numbers are doubles: finding others would take too long for one turn.
 */
export function* readLargePayload(payload: Buffer): Generator<undefined, unknown> {
  try {
    return yield* parseLargeJson(isUtf8(payload) ? payload : Buffer.from(payloadText(payload)));
  } catch {
    try {
      return parsePlainJson(payloadText(payload), maxEscapedNamesAtOnce) as unknown;
    } catch {
      return undefined;
    }
  }
}

/**
 * Reads a JSON text in UTF-8 as `parseJson` does, in pieces: yields between two of them. Throws SyntaxError, TypeError for what is not UTF-8,
 * TooDeepError, or TooManyMembersError.
 *
 * The text is cut after commas, at any depth. What is open there is opened again before the next piece, which is then joined to what came before.
 */
export function* parseLargeJson(
  text: Uint8Array,
  {
    pieceBytes = defaultPieceBytes,
    maxMembers = Number.POSITIVE_INFINITY,
    maxObjectMembers = growableMembers,
    freeField,
  }: LargeJsonOptions = {},
): Generator<undefined, unknown> {
  const free = freeField === undefined ? null : Buffer.from(JSON.stringify(freeField));
  const pieces = new JoinedPieces(text);
  const open: Open[] = [];
  let start = 0;
  let last = comma;
  let outer: Open | undefined;
  let isFree = false;
  let ownMaxMembers = maxMembers;
  let [keyStart, keyEnd] = [0, 0];
  let scannedTo = 0;
  for (let at = 0; at < text.length; at++) {
    if (at >= scannedTo + scannedBytes) {
      scannedTo = at;
      yield;
    }
    const byte = text[at];
    switch (byte) {
      case 0x20:
      case 0x09:
      case 0x0a:
      case 0x0d:
        continue;
      case quote:
        keyStart = at;
        at = closingQuote(text, at) ?? text.length - 1;
        keyEnd = at + 1;
        break;
      case braceOpen:
      case bracketOpen:
        outer = open.length > 1 ? open.at(-1) : undefined;
        if (open.length === maxNesting) throw new TooDeepError(`nested deeper than ${maxNesting} levels`, pathOf(text, open));
        isFree = outer?.isFree ?? (open.length === 1 && free?.equals(text.subarray(keyStart, keyEnd)) === true);
        ownMaxMembers = isFree ? Number.POSITIVE_INFINITY : maxMembers;
        open.push({
          isArray: byte === bracketOpen,
          isFree,
          keyStart,
          keyEnd,
          commas: 0,
          maxMembers: byte === bracketOpen ? ownMaxMembers : Math.min(ownMaxMembers, maxObjectMembers),
        });
        break;
      case braceClose:
      case bracketClose:
        // Where the text is cut after that comma, the piece would not show it.
        if (last === comma) throw new SyntaxError('nothing follows a comma');
        open.pop();
        break;
      case comma:
        outer = open.at(-1);
        if (outer !== undefined && ++outer.commas >= outer.maxMembers)
          throw new TooManyMembersError(`more than ${outer.maxMembers} members`, pathOf(text, open));
        if (at - start < pieceBytes || open.length === 0) break;
        if (last === comma || last === braceOpen || last === bracketOpen) throw new SyntaxError('nothing precedes a comma');
        pieces.add(start, at, open);
        start = at + 1;
        scannedTo = at;
        yield;
        break;
    }
    last = byte ?? comma;
  }
  return pieces.add(start, text.length, []);
}

const maxReportedSteps = 100;

function pathOf(text: Uint8Array, open: readonly Open[]): PropertyKey[] {
  return open.slice(1, maxReportedSteps + 1).map(({ keyStart, keyEnd }, i): PropertyKey => {
    const outer = open[i];
    if (outer?.isArray === true) return outer.commas;
    const key: unknown = parsePlainJson(new TextDecoder().decode(text.subarray(keyStart, keyEnd)));
    return String(key);
  });
}

class JoinedPieces {
  readonly #text: Uint8Array;
  readonly #beginning = new TextDecoder('utf-8', { fatal: true });
  /** Only a text may begin with a byte order mark, not its chunks. */
  readonly #middle = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  /** The key of what is opened again. Random, so that the text has no such key. */
  readonly #mark = randomUUID();
  /** Open containers, each within the one before it. */
  #path: Container[] = [];
  #opening = '';

  constructor(text: Uint8Array) {
    this.#text = text;
  }

  /** Returns all that was added. `open`: what is open at the end of the piece. */
  add(start: number, end: number, open: readonly Open[]): unknown {
    const decoder = start === 0 ? this.#beginning : this.#middle;
    const closing = open.map(({ isArray }) => (isArray ? ']' : '}')).reverse();
    const piece: unknown = parseJson(this.#opening + decoder.decode(this.#text.subarray(start, end)) + closing.join(''));
    let part: unknown = piece;
    for (const [level, container] of this.#path.entries()) {
      const isInnermost = level === this.#path.length - 1;
      part = append(container, part, isInnermost ? null : this.#mark);
    }
    const whole = this.#path[0] ?? piece;
    this.#path = this.#pathTo(whole, open);
    this.#opening = open.map(({ isArray }, i) => (isArray ? '[' : i === open.length - 1 ? '{' : `{"${this.#mark}":`)).join('');
    return whole;
  }

  #pathTo(root: unknown, open: readonly Open[]): Container[] {
    const path: Container[] = [];
    let inner: unknown = root;
    for (const [level, { keyStart, keyEnd }] of open.entries()) {
      const outer = path[level - 1];
      if (Array.isArray(outer)) inner = outer.at(-1);
      else if (outer !== undefined) inner = outer[parsePlainJson(this.#middle.decode(this.#text.subarray(keyStart, keyEnd)))];
      if (!isContainer(inner)) throw new SyntaxError('brackets do not match');
      path.push(inner);
    }
    return path;
  }
}

/** Adds `part` to `container`, except its part of the open member (at `mark`; null: nothing is open), which it returns. */
function append(container: Container, part: unknown, mark: string | null): unknown {
  if (Array.isArray(container)) {
    if (!Array.isArray(part)) throw new SyntaxError('brackets do not match');
    for (let i = mark === null ? 0 : 1; i < part.length; i++) container.push(part[i]);
    return part[0];
  }
  if (!isContainer(part) || Array.isArray(part)) throw new SyntaxError('brackets do not match');
  for (const key of Object.keys(part)) {
    if (key === mark) continue;
    if (key === '__proto__')
      Object.defineProperty(container, key, { value: part[key], enumerable: true, configurable: true, writable: true });
    else container[key] = part[key];
  }
  return mark === null ? undefined : part[mark];
}
