import { closingQuote, skipSpace } from './json-scan.ts';
import { parsePlainJson } from './plain-json.ts';

const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;
const [braceOpen, braceClose, bracketOpen, bracketClose] = [0x7b, 0x7d, 0x5b, 0x5d];
const comma = 0x2c;
/** Between two yields. */
const pieceBytes = 64 * 1024;

interface Open {
  /** Names that an object has so far; null: they are not checked, or it is a list. */
  names: Set<string> | null;
  isFree: boolean;
  /** The member or element that is read. */
  at: string | number;
}

/**
 * Returns the path of the first member whose object has another member of that name before it; null: there is none. Yields between pieces of the text.
 * `json` is valid JSON. Nothing below the member `freeField` of the outermost object is checked.
 */
export function* repeatedMember(json: Uint8Array, freeField?: string): Generator<undefined, (string | number)[] | null> {
  const open: Open[] = [];
  let yieldAt = pieceBytes;
  for (let at = 0; at < json.length; at++) {
    if (at >= yieldAt) {
      yieldAt = at + pieceBytes;
      yield;
    }
    const byte = json[at];
    const inner = open.at(-1);
    switch (byte) {
      case quote: {
        const end = closingQuote(json, at) ?? json.length;
        const after = skipSpace(json, end + 1);
        if (json[after] === colon && inner !== undefined && inner.names !== null) {
          const name = nameIn(json.subarray(at + 1, end));
          inner.at = name;
          if (inner.names.has(name)) return open.map((each) => each.at);
          inner.names.add(name);
        }
        at = json[after] === colon ? after : end;
        break;
      }
      case braceOpen:
      case bracketOpen: {
        const isFree = inner !== undefined && (inner.isFree || (open.length === 1 && inner.at === freeField));
        open.push({ names: byte === braceOpen && !isFree ? new Set() : null, isFree, at: 0 });
        break;
      }
      case braceClose:
      case bracketClose:
        open.pop();
        break;
      case comma:
        if (typeof inner?.at === 'number') inner.at++;
    }
  }
  return null;
}

function nameIn(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
  return bytes.includes(backslash) ? (parsePlainJson(`"${text}"`) as string) : text;
}
