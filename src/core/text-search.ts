/**
 * Search for text of one caller in text of another. V8 searches in linear time for at most 250 characters, the reach of its tables for shifts. For
 * longer texts the work can grow with the product of both lengths: 1,000,000 letters `a` with 10,000 around one `b` take seconds.
 */

/** Characters of what is searched for. */
const maxNativeLength = 250;
/** Characters × characters, where even the product takes about 1 ms. */
const maxNativeProduct = 4_000_000;

/** Worst-case time of `includesText`, in nanoseconds. */
export function searchNs(text: string, part: string): number {
  const nsPerCharacter = part.length < 7 ? 8 : isNative(text, part) ? 5 : 11;
  return (text.length + part.length) * nsPerCharacter;
}

/** `text.includes(part)` in time that grows with the sum of the lengths. */
export function includesText(text: string, part: string): boolean {
  if (isNative(text, part)) return text.includes(part);
  const borders = bordersOf(part);
  let matched = 0;
  for (let i = 0; i < text.length && matched < part.length; i++) matched = advanced(part, borders, matched, text.charCodeAt(i));
  return matched === part.length;
}

/** The length of the longest beginning of `part`, shorter than all of it, with which the text ends; in linear time, too. */
export function unfinishedLength(text: string, part: string): number {
  const end = text.slice(Math.max(0, text.length - part.length + 1));
  const borders = bordersOf(part);
  let matched = 0;
  for (let i = 0; i < end.length; i++) matched = advanced(part, borders, matched, end.charCodeAt(i));
  return matched;
}

/** Characters that `replacedTexts` compares, beside one check of each position of the text. */
const maxCompared = 4_000_000;

/**
 * The text with `replacement` for each of `parts`, in one pass for all of them: of several at one position the first one counts. Null: very many of
 * them begin like the text at very many positions, and it would take too long. Every part has at least `startLength` characters.
 */
export function replacedTexts(text: string, parts: readonly string[], replacement: string, startLength: number): string | null {
  const byStart = Map.groupBy(parts, (part) => part.slice(0, startLength));
  const pieces: string[] = [];
  let [at, copiedTo, compared] = [0, 0, 0];
  while (at + startLength <= text.length) {
    let found: string | undefined;
    for (const part of byStart.get(text.slice(at, at + startLength)) ?? []) {
      compared += part.length;
      if (compared > maxCompared) return null;
      if (!text.startsWith(part, at)) continue;
      found = part;
      break;
    }
    if (found === undefined) {
      at++;
      continue;
    }
    pieces.push(text.slice(copiedTo, at), replacement);
    at += found.length;
    copiedTo = at;
  }
  return pieces.join('') + text.slice(copiedTo);
}

function isNative(text: string, part: string): boolean {
  return part.length <= maxNativeLength || part.length > text.length || text.length * part.length <= maxNativeProduct;
}

/** For each beginning of `part`: how long the longest shorter beginning is with which it ends (Knuth, Morris and Pratt). */
function bordersOf(part: string): Uint32Array {
  const borders = new Uint32Array(part.length);
  for (let i = 1; i < part.length; i++) borders[i] = advanced(part, borders, borders[i - 1] ?? 0, part.charCodeAt(i));
  return borders;
}

/** How much of `part` is matched after one more character. `matched` is less than the whole. */
function advanced(part: string, borders: Uint32Array, matched: number, character: number): number {
  let length = matched;
  while (length > 0 && part.charCodeAt(length) !== character) length = borders[length - 1] ?? 0;
  return part.charCodeAt(length) === character ? length + 1 : length;
}

/** A text as searches by people compare it: `é` is one letter, whether it is written as one character or two, and in any case. */
export function foldedText(text: string): string {
  return text.normalize('NFC').toLowerCase();
}
