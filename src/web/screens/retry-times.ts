export interface PlannedAttempt {
  number: number;
  at: string;
  /** The wait before it, in ms; null: of the next one, whose time is known. */
  waitMs: number | null;
}

/** By how much a wait is longer or shorter by chance. */
export const jitterPercent = 20;

export interface Waiting {
  /** Attempts that were made. */
  attempts: number;
  maxAttempts: number;
  nextAttemptAt: string;
  /** No attempt is made after it; null: it does not expire. */
  expiresAt: string | null;
}

/** When the remaining attempts are made, if each fails at once; those after the next one on average. `delaysMs`: the waits before the retries. */
export function plannedAttempts(
  { attempts, maxAttempts, nextAttemptAt, expiresAt }: Waiting,
  delaysMs: readonly number[],
): PlannedAttempt[] {
  const planned: PlannedAttempt[] = [{ number: attempts + 1, at: nextAttemptAt, waitMs: null }];
  let atMs = Date.parse(nextAttemptAt);
  for (let number = attempts + 2; number <= maxAttempts; number++) {
    const waitMs = delaysMs[number - 2] ?? delaysMs.at(-1) ?? 0;
    atMs += waitMs;
    if (expiresAt !== null && atMs > Date.parse(expiresAt)) break;
    planned.push({ number, at: new Date(atMs).toISOString(), waitMs });
  }
  return planned;
}

export interface RetryPolicy {
  maxRetries: number;
  initialDelay: number;
  maxDelay: number;
  backoffMultiplier: number;
  /** Replaces the others; null: they count. */
  delays: readonly number[] | null;
}

/** The waits before the retries of a destination, in ms. */
export function delaysOf({ maxRetries, initialDelay, maxDelay, backoffMultiplier, delays }: RetryPolicy): readonly number[] {
  return delays ?? Array.from({ length: maxRetries }, (_none, n) => Math.min(maxDelay, initialDelay * backoffMultiplier ** n));
}
