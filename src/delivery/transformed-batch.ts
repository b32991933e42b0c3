import type { TransformRecord } from '../core/records.ts';
import type { Batch, BatchMember, DeliveryQueue, Job, UnsentMember } from '../data/delivery-queue.ts';
import type { EventTransformer } from './transformed-event.ts';

const atATime = 8;

/**
 * The batch with what its route's transform makes of its events. Members that the transform filters out or fails on are noted, so
 * that they stay out of every repeat. Null when the batch has ended. Rejects as `EventTransformer` does.
 */
export async function transformedBatch(
  batch: Batch,
  job: Job,
  transform: TransformRecord | null,
  { transformer, queue }: { transformer: EventTransformer; queue: DeliveryQueue },
): Promise<Batch | null> {
  const unsent: UnsentMember[] = [];
  const members = [...batch.members];
  const transformed = async (member: BatchMember): Promise<BatchMember> => {
    const { event } = member;
    if (event === null || member.isUnsent || (transform === null && !member.hasOutput)) return member;
    const made = await transformer.transformed({ ...member, target: job.target }, event, transform, queue);
    if (made.unsent === undefined) return { ...member, event: made.event };
    const { messageKey } = member;
    if (made.unsent.type === 'unsent') unsent.push({ messageKey, status: made.unsent.status, reason: made.unsent.reason });
    else unsent.push({ messageKey, status: 'transform_failed', reason: 'the output of the transform is gone' });
    return { ...member, isUnsent: true };
  };
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < members.length) {
      const at = next++;
      const member = members[at];
      if (member !== undefined) members[at] = await transformed(member);
    }
  };
  await Promise.all(Array.from({ length: atATime }, work));
  if (unsent.length > 0 && !(await queue.leaveOut(job, unsent))) return null;
  return { ...batch, members };
}
