import { isUtf8 } from 'node:buffer';
import { wholePayloadBytes } from '../payload-sizes.ts';

/** Most fields of a form; Twilio sends about a hundred. More would be sorted before anything is verified. */
const maxFields = 5000;
/** Most bytes of names, and of values that share a name: so much is sorted in one turn of the event loop. */
const maxSortedBytes = wholePayloadBytes;
/** About 1 ms of work. */
const pieceBytes = 65_536;

const [ampersand, equalsSign, plusSign, percentSign, space] = [0x26, 0x3d, 0x2b, 0x25, 0x20];

/** The position of a value in the body. */
interface Place {
  start: number;
  end: number;
}

/**
 * Twilio's signed text of a form: its fields sorted by name, each its name and its value; of equal fields one. Yields between two pieces of a large body. Null:
 * there is too much to sort, or a form above 1 MiB is no UTF-8.
 */
export function* signedFormFields(body: Buffer): Generator<undefined, Buffer | null> {
  const isLarge = body.length > wholePayloadBytes;
  const fields = yield* fieldPlaces(body);
  if (fields === null) return null;
  // The replacement of a byte that is no UTF-8 has three.
  const signed = new DecodedText(Buffer.allocUnsafe(isLarge ? body.length : 3 * body.length));
  for (const name of [...fields.keys()].sort()) {
    const [first, ...others] = fields.get(name) ?? [];
    if (first === undefined) continue;
    if (others.length === 0) {
      signed.add(name);
      yield* signed.addDecoded(body, first);
      continue;
    }
    const values = new Set<string>();
    for (const place of [first, ...others]) values.add(yield* decodedText(body, place));
    for (const value of [...values].sort()) signed.add(name + value);
  }
  return isLarge && signed.hasReplaced ? null : signed.bytes;
}

function* fieldPlaces(body: Buffer): Generator<undefined, Map<string, Place[]> | null> {
  const fields = new Map<string, Place[]>();
  let sortedBytes = 0;
  let count = 0;
  for (let start = 0; start <= body.length; ) {
    if (++count > maxFields) return null;
    const separator = body.indexOf(ampersand, start);
    const end = separator < 0 ? body.length : separator;
    if (end > start) {
      const equals = body.subarray(start, end).indexOf(equalsSign);
      const nameEnd = equals < 0 ? end : start + equals;
      sortedBytes += nameEnd - start;
      if (sortedBytes > maxSortedBytes) return null;
      const name = yield* decodedText(body, { start, end: nameEnd });
      const place = { start: Math.min(nameEnd + 1, end), end };
      const known = fields.get(name) ?? [];
      fields.set(name, known);
      const [first] = known;
      if (first !== undefined) sortedBytes += place.end - place.start + (known.length === 1 ? first.end - first.start : 0);
      if (sortedBytes > maxSortedBytes) return null;
      known.push(place);
    }
    start = end + 1;
  }
  return fields;
}

function* decodedText(body: Buffer, place: Place): Generator<undefined, string> {
  const text = new DecodedText(Buffer.allocUnsafe(3 * (place.end - place.start)));
  yield* text.addDecoded(body, place);
  return text.bytes.toString('utf8');
}

class DecodedText {
  readonly #bytes: Buffer;
  #length = 0;
  hasReplaced = false;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  add(text: string): void {
    this.#length += this.#bytes.write(text, this.#length);
  }

  /** As `URLSearchParams` decodes it, which replaces what is no UTF-8. */
  *addDecoded(body: Buffer, { start, end }: Place): Generator<undefined, void> {
    const from = this.#length;
    let pieceEnd = start + pieceBytes;
    for (let at = start; at < end; at++) {
      if (at >= pieceEnd) {
        pieceEnd += pieceBytes;
        yield;
      }
      let byte = body[at] ?? 0;
      if (byte === plusSign) byte = space;
      else if (byte === percentSign && at + 2 < end) {
        const [high, low] = [hexDigit(body[at + 1] ?? 0), hexDigit(body[at + 2] ?? 0)];
        if (high >= 0 && low >= 0) {
          byte = high * 16 + low;
          at += 2;
        }
      }
      this.#bytes[this.#length++] = byte;
    }
    const decoded = this.#bytes.subarray(from, this.#length);
    if (isUtf8(decoded)) return;
    this.hasReplaced = true;
    // The text of a large form is not read again.
    if (decoded.length > wholePayloadBytes) return;
    const replaced = decoded.toString('utf8');
    this.#length = from;
    this.add(replaced);
  }
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
