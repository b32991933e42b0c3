import type { GrowingDelays, RetryPolicyRecord } from './records.ts';

const jitterShare = 0.2;

/** The delays between attempts, one after the other; when they are used up there is no further attempt. */
export interface RetrySchedule {
  delaysMs: readonly number[];
}

function isGrowing(policy: RetryPolicyRecord | RetrySchedule): policy is GrowingDelays {
  return policy.delaysMs === undefined;
}

/** How many attempts may follow the first one. */
export function retryCount(policy: RetryPolicyRecord | RetrySchedule): number {
  return isGrowing(policy) ? policy.maxRetries : policy.delaysMs.length;
}

/**
 * Delay in ms before the attempt that follows `attemptsMade` (≥ 1) failed ones: of a policy initialDelay × multiplier^(n-1), at most
 * maxDelay, of a schedule its n-th; ±20 %. `random` gives numbers in [0, 1).
 */
export function retryDelayMs(policy: RetryPolicyRecord | RetrySchedule, attemptsMade: number, random: () => number = Math.random): number {
  return withJitter(exactDelayMs(policy, attemptsMade), random);
}

function exactDelayMs(policy: RetryPolicyRecord | RetrySchedule, attemptsMade: number): number {
  if (!isGrowing(policy)) return policy.delaysMs[attemptsMade - 1] ?? policy.delaysMs.at(-1) ?? 0;
  return Math.min(policy.maxDelayMs, policy.initialDelayMs * policy.backoffMultiplier ** (attemptsMade - 1));
}

/** `ms` ±20 %. */
export function withJitter(ms: number, random: () => number = Math.random): number {
  return Math.round(ms * (1 - jitterShare + 2 * jitterShare * random()));
}
