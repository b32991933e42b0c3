const [quote, backslash, minus, dot, zero, nine] = [0x22, 0x5c, 0x2d, 0x2e, 0x30, 0x39];

/**
 * Returns the position of the quote that closes the string that opens at `start`; the end of the text when there is none. Takes about a
 * nanosecond for each character at worst, also of a string of escaped quotes.
 */
export function endOfJsonString(text: string, start: number): number {
  const end = text.indexOf('"', start + 1);
  if (end < 0) return text.length;
  if (text.charCodeAt(end - 1) !== backslash) return end;
  // An escape, or the end of one, precedes the first quote.
  let at = text.indexOf('\\', start + 1);
  while (at < text.length && text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1;
  return Math.min(at, text.length);
}

/** A decimal of at most so many digits is the only one of them that its double is nearest to. */
const safeDigits = 15;

/**
 * Calls `found` with the position of every number of a JSON text, in order. `isPlain`: the double nearest to it is certainly written in the same way;
 * that of the others may be, too.
 */
export function forEachNumber(text: string, found: (start: number, end: number, isPlain: boolean) => void): void {
  for (let at = 0; at < text.length; at++) {
    const first = text.charCodeAt(at);
    if (first === quote) {
      at = endOfJsonString(text, at);
      continue;
    }
    if (!isDigit(first) && first !== minus) continue;
    const start = at;
    const whole = first === minus ? start + 1 : start;
    let digits = first === minus ? 0 : 1;
    let last = first;
    let hasDot = false;
    let hasExponent = false;
    for (at++; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (isDigit(code)) digits++;
      else if (code === dot) hasDot = true;
      else if (isOfExponent(code)) hasExponent = true;
      else break;
      last = code;
    }
    const isSafe = digits <= safeDigits && !hasExponent;
    const isPlain = isSafe && (hasDot ? last !== zero && !isSmall(text, whole) : digits > 1 || first !== minus || last !== zero);
    found(start, at, isPlain);
    at--;
  }
}

function isDigit(code: number): boolean {
  return code >= zero && code <= nine;
}

/** `e`, `E`, `+` or `-`. */
function isOfExponent(code: number): boolean {
  return code === 0x65 || code === 0x45 || code === 0x2b || code === minus;
}

/** The double may be written with an exponent: below a millionth it is. */
function isSmall(text: string, start: number): boolean {
  return text.charCodeAt(start) === zero && text.charCodeAt(start + 2) === zero;
}

const longestDouble = 30;

/** Start and end of each number that is written differently than the double nearest to it, in order: of most texts there are none. */
export function inexactNumbers(text: string): number[] {
  const places: number[] = [];
  forEachNumber(text, (start, end, isPlain) => {
    if (isPlain) return;
    const written = text.slice(start, end);
    // No double is written in so many characters; to read very many takes long.
    if (end - start > longestDouble || String(Number(written)) !== written) places.push(start, end);
  });
  return places;
}
