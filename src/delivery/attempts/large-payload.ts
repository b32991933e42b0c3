import type { Clock } from '../../core/clock.ts';
import type { OrganizationBudget } from '../../core/organization-budget.ts';
import { mebibytes } from '../../core/payload-sizes.ts';
import type { Job, Settlement } from '../../data/queue/delivery-queue.ts';
import type { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import type { ChunkedPayload } from '../../data/shard/payload-chunks.ts';
import type { ReadyPlan } from '../plans/delivery-plan.ts';
import { thinFormOf } from './thin-event.ts';
import { hasTransform } from './transformed-event.ts';

/**
 * Memory of a worker for large payloads, in MiB: all of it, that of an organization and of one target. An organization gets all but the last quarter, which
 * it leaves to others, and one target of it no more than `ofTarget`.
 */
export const payloadMemoryMiB = { all: 128, ofOrganization: 128, ofTarget: 64 };

/** A job that takes longer to prepare is requeued: a worker may hold a message for 150 s, of which an attempt may last 120 s. */
const preparingMs = 25_000;

/** Where payloads are read from, and the memory for them. */
export interface PayloadMemory {
  queue: RedisDeliveryQueue;
  clock: Clock;
  room: OrganizationBudget;
}

/** Gets a function that returns whether the attempt is late. */
type DeliverWhole = (job: Job, isLate: () => boolean) => Promise<Settlement>;

function never(): boolean {
  return false;
}

/** Whether nothing reads the payload here: a link to it goes out. */
function isLinkAlone(job: Job, plan: ReadyPlan): boolean {
  return thinFormOf(plan) !== null && !hasTransform(job, plan);
}

/**
 * Delivers a job whose payload is in chunks with that payload, once it fits the memory budget; every other job at once. After 10 s without memory the
 * message is requeued.
 */
export function withPayload(job: Job, plan: ReadyPlan, room: PayloadMemory, deliver: DeliverWhole): Promise<Settlement> {
  const chunks = job.event?.chunks;
  if (chunks === undefined || plan.type === 'warehouse' || isLinkAlone(job, plan)) return deliver(job, never);
  return withChunks(job, chunks, room, deliver);
}

async function withChunks(
  job: Job,
  chunks: ChunkedPayload,
  { queue, clock, room }: PayloadMemory,
  deliver: DeliverWhole,
): Promise<Settlement> {
  const { event } = job;
  const begunAtMs = clock.now();
  const { org, routeId, destinationId } = job.target;
  const leave = await room.enter(org, mebibytes(chunks.bytes), { source: `${routeId} ${destinationId}` });
  if (leave === null) return { job, outcome: { type: 'back' }, maxAttempts: null };
  try {
    const payload = await queue.payload(chunks);
    const whole = { ...job, event: payload === null || event === null ? null : { ...event, payload } };
    return { ...(await deliver(whole, () => clock.now() - begunAtMs > preparingMs)), job };
  } finally {
    leave();
  }
}
