import { randomUUID } from 'node:crypto';
import { type EventClaim, quotaExceeded } from '../data/intake.ts';
import type { Call } from './operation.ts';

/**
 * Runs what queues up to `count` messages, and answers `answer`; those that it did not queue are given back. QUOTA_EXCEEDED, before
 * it begins, when the organization may not queue so many more in this month.
 */
export async function queueWithinQuota<T>(
  { services, caller }: Pick<Call, 'services' | 'caller'>,
  count: number,
  queue: () => Promise<{ queued: number; answer: T }>,
): Promise<T> {
  const { id: org, monthlyMessages } = caller.organization;
  if (monthlyMessages === null) return (await queue()).answer;
  const receivedAtMs = services.clock.now();
  const claims = Array.from({ length: count }, (): EventClaim => {
    return { org, eventId: randomUUID(), receivedAtMs, mark: null, windowMs: 0, messages: 1, monthlyMessages };
  });
  const giveBack = (unused: readonly EventClaim[]) => Promise.all(unused.map((claim) => services.intake.settle(claim, 'failed')));
  const outcomes = await Promise.all(claims.map((claim) => services.intake.claim(claim)));
  if (outcomes.some(({ outcome }) => outcome === 'quotaExceeded')) {
    await giveBack(claims);
    throw quotaExceeded(receivedAtMs, monthlyMessages);
  }
  try {
    const { queued, answer } = await queue();
    await giveBack(claims.slice(queued));
    return answer;
  } catch (error) {
    await giveBack(claims).catch(() => undefined);
    throw error;
  }
}
