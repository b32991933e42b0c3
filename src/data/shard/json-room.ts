/** How many bytes the JSON of a value has. */
export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** Divides a room among parts: none gets more than it wants, and what one leaves belongs to the others (max-min). */
export function sharesOf(room: number, wanted: readonly number[]): number[] {
  const shares = wanted.map(() => 0);
  let left = Math.max(0, room);
  let others = wanted.length;
  for (const [i, want] of [...wanted.entries()].sort(([, one], [, other]) => one - other)) {
    const share = Math.min(want, Math.floor(left / others));
    shares[i] = share;
    left -= share;
    others--;
  }
  return shares;
}

/** The longest beginning of a text, whole characters, whose JSON with its quotes fits. */
export function fittingText(text: string, bytes: number): string {
  // A character has up to 12 bytes in JSON, and at least one.
  let [fits, tooLong] = [0, Math.min(text.length, bytes) + 1];
  while (tooLong - fits > 1) {
    const middle = (fits + tooLong) >> 1;
    if (jsonBytes(text.slice(0, middle)) <= bytes) fits = middle;
    else tooLong = middle;
  }
  return text.slice(0, fits).replace(/[\uD800-\uDBFF]$/, '');
}

/** The first headers whose JSON fits. */
export function fittingHeaders(headers: readonly [string, string][], bytes: number): [string, string][] {
  let left = bytes;
  let count = 0;
  for (const header of headers) {
    left -= jsonBytes(header);
    if (left < 0) break;
    count++;
  }
  return headers.slice(0, count);
}
