/** Longest time after which a message may expire, in seconds. */
export const maxExpirySeconds = 2_592_000;

/**
 * Returns when a message expires, in milliseconds since the epoch, that was accepted, or is first attempted, at `fromMs`: after the smallest of the seconds
 * that apply. Undefined: it does not expire.
 *
 * @example
 * expiresAtMs(1_000, 60, null, 30) // 31_000
 */
export function expiresAtMs(fromMs: number, ...seconds: (number | null | undefined)[]): number | undefined {
  const smallest = smallestExpiry(...seconds);
  return smallest === undefined ? undefined : fromMs + smallest * 1000;
}

/** Returns the smallest of the seconds after which a message expires; undefined: none applies. */
export function smallestExpiry(...seconds: (number | null | undefined)[]): number | undefined {
  let smallest: number | undefined;
  for (const each of seconds) if (each != null && (smallest === undefined || each < smallest)) smallest = each;
  return smallest;
}

/** Reads whole seconds that a sender wrote. Null: they are no number from 1 to `maxExpirySeconds`. */
export function expirySeconds(text: string): number | null {
  const seconds = /^\d{1,7}$/.test(text) ? Number(text) : 0;
  return seconds >= 1 && seconds <= maxExpirySeconds ? seconds : null;
}
