import type { Clock } from '../../core/clock.ts';
import type { OrganizationBudget } from '../../core/organization-budget.ts';
import type { Job, Settlement } from '../../data/queue/delivery-queue.ts';
import type { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import type { ReadyPlan } from '../plans/delivery-plan.ts';
import { thinFormOf } from './thin-event.ts';
import { hasTransform } from './transformed-event.ts';

const mebibyte = 1_048_576;

/** Of large payloads that a worker has in memory, in MiB; an organization may have the second number, which is not less than the largest payload. */
export const payloadRoomMiB = { all: 96, ofOrganization: 64 };

/** What has taken longer until its attempt could begin goes back: a worker may hold a message for 150 s, of which an attempt may last 120 s. */
const preparingMs = 25_000;

/** Whether nothing reads the payload here: a link to it goes out. */
function isLinkAlone(job: Job, plan: ReadyPlan): boolean {
  return thinFormOf(plan) !== null && !hasTransform(job, plan);
}

/**
 * Delivers a job whose payload is in chunks with that payload, once there is room for it in memory; every other job at once. Without room within 10 s the
 * message goes back. `deliver` is given what says whether the attempt may still begin.
 */
export async function withPayload(
  job: Job,
  plan: ReadyPlan,
  { queue, clock, room }: { queue: RedisDeliveryQueue; clock: Clock; room: OrganizationBudget },
  deliver: (job: Job, isLate: () => boolean) => Promise<Settlement>,
): Promise<Settlement> {
  const { event } = job;
  if (event?.chunks === undefined || plan.type === 'warehouse' || isLinkAlone(job, plan)) return await deliver(job, () => false);
  const begunAtMs = clock.now();
  const leave = await room.enter(job.target.org, Math.ceil(event.chunks.bytes / mebibyte));
  if (leave === null) return { job, outcome: { type: 'back' }, maxAttempts: null };
  try {
    const payload = await queue.payload(event.chunks);
    const whole = { ...job, event: payload === null ? null : { ...event, payload } };
    return { ...(await deliver(whole, () => clock.now() - begunAtMs > preparingMs)), job };
  } finally {
    leave();
  }
}
