/** How many bytes the JSON of a value has. */
export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** Divides a budget among parts: none gets more than it needs, and what one leaves goes to the others (max-min). */
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

/** The first headers whose JSON fits, and the beginning of the next one. */
export function fittingHeaders(headers: readonly [string, string][], bytes: number): { headers: [string, string][]; isCut: boolean } {
  const kept: [string, string][] = [];
  let left = bytes;
  for (const [name, value] of headers) {
    const size = jsonBytes([name, value]);
    if (size > left) {
      const beginning = fittingText(value, left - jsonBytes([name, '']) + 2);
      if (beginning !== '') kept.push([name, beginning]);
      return { headers: kept, isCut: true };
    }
    kept.push([name, value]);
    left -= size;
  }
  return { headers: kept, isCut: false };
}
