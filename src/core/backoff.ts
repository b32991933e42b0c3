import type { RetryPolicyRecord } from './records.ts';

const jitterShare = 0.2;

/**
 * Delay in ms before the attempt that follows `attemptsMade` (≥ 1) failed ones: initialDelay × multiplier^(n-1), at most
 * maxDelay, ±20 % (DESIGN section 6). `random` gives numbers in [0, 1).
 */
export function retryDelayMs(policy: RetryPolicyRecord, attemptsMade: number, random: () => number = Math.random): number {
  const exact = Math.min(policy.maxDelayMs, policy.initialDelayMs * policy.backoffMultiplier ** (attemptsMade - 1));
  return withJitter(exact, random);
}

/** `ms` ±20 %. */
export function withJitter(ms: number, random: () => number = Math.random): number {
  return Math.round(ms * (1 - jitterShare + 2 * jitterShare * random()));
}
