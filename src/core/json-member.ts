import { closingQuote, skipSpace } from './json-scan.ts';
import { parsePlainJson } from './plain-json.ts';

const quote = 0x22;
const [braceOpen, braceClose, bracketOpen, bracketClose] = [0x7b, 0x7d, 0x5b, 0x5d];
const comma = 0x2c;
/** Bytes that are read one by one in a chunk. */
const pieceBytes = 256 * 1024;

/**
 * The bytes of a member's value in the text of a JSON object, without the white space around it: of several of the name those of
 * the last, as `JSON.parse` reads it. Null when there is none. `json` is known to be an object that `JSON.parse` takes. In pieces: yields between them.
 */
export function* jsonMember(json: Buffer, name: string): Generator<undefined, Buffer | null> {
  let found: Buffer | null = null;
  let at = json.indexOf(braceOpen) + 1;
  while (true) {
    at = skipSpace(json, at);
    if (json[at] === comma) {
      at++;
      continue;
    }
    if (json[at] !== quote) return found;
    const keyEnd = endOfString(json, at);
    const isNamed = parsePlainJson(json.toString('utf8', at, keyEnd)) === name;
    const start = skipSpace(json, json.indexOf(0x3a, keyEnd) + 1);
    const end = yield* endOfValue(json, start);
    if (isNamed) found = json.subarray(start, end);
    at = end;
  }
}

/** The bytes of the elements of a JSON array, in the same way. Yields after each, too. */
export function* jsonElements(json: Buffer): Generator<undefined, Buffer[]> {
  const found: Buffer[] = [];
  let at = skipSpace(json, json.indexOf(bracketOpen) + 1);
  while (at < json.length && json[at] !== bracketClose) {
    const end = yield* endOfValue(json, at);
    found.push(json.subarray(at, end));
    at = skipSpace(json, end);
    if (json[at] === comma) at = skipSpace(json, at + 1);
    yield;
  }
  return found;
}

/** After the closing quote; `start` is that of the opening one. */
function endOfString(json: Buffer, start: number): number {
  return (closingQuote(json, start) ?? json.length - 1) + 1;
}

function* endOfValue(json: Buffer, start: number): Generator<undefined, number> {
  const first = json[start];
  if (first === quote) return endOfString(json, start);
  if (first !== braceOpen && first !== bracketOpen) return endOfScalar(json, start);
  let depth = 0;
  let pieceEnd = start + pieceBytes;
  for (let at = start; at < json.length; at++) {
    if (at >= pieceEnd) {
      pieceEnd = at + pieceBytes;
      yield;
    }
    const byte = json[at];
    if (byte === quote) at = endOfString(json, at) - 1;
    else if (byte === braceOpen || byte === bracketOpen) depth++;
    else if (byte === braceClose || byte === bracketClose) {
      depth--;
      if (depth === 0) return at + 1;
    }
  }
  return json.length;
}

function endOfScalar(json: Buffer, start: number): number {
  let at = start;
  while (at < json.length && !isAfterScalar(json[at])) at++;
  return at;
}

function isAfterScalar(byte: number | undefined): boolean {
  return byte === comma || byte === braceClose || byte === bracketClose || byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
