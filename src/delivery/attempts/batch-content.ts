import type { Clock } from '../../core/clock.ts';
import { loopTurns } from '../../core/loop-turns.ts';
import type { Batch, BatchMember, Job, UnsentMember } from '../../data/queue/delivery-queue.ts';
import type { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import type { ReadyWarehousePlan } from '../plans/delivery-plan.ts';
import { readLayout } from '../targets/warehouse/batch-layout.ts';
import { type Added, BatchObjects } from '../targets/warehouse/batch-objects.ts';
import type { StoredObject } from '../targets/warehouse/object-writer.ts';
import type { WarehousePlan } from '../targets/warehouse/warehouse-plan.ts';
import { withKeptHeaders } from './kept-event-headers.ts';
import type { EventTransformer, Transformed } from './transformed-event.ts';
import { tooLargeToWrite, unsentMember } from './unsent-member.ts';

/** Members per read: events, which have 5 MiB in all, and outputs of transforms, which have up to 1 MiB each. */
const membersPerRead = 50;
const outputsPerRead = 8;
/** Later records are left to another batch. */
const makingMs = 10_000;

export interface ContentContext {
  worker: string;
  queue: RedisDeliveryQueue;
  transformer: EventTransformer;
  clock: Clock;
}

export interface BatchContent {
  objects: StoredObject[];
  /** Warning of the transforms of the written events; null: none. */
  warning: string | null;
}

/**
 * The objects of the first `ready` members of a batch; none when no member has a record. What exceeds 16 MiB, takes longer than 10 s or
 * is not ready is cut off, and is a batch of its own before this one is written. Null: the batch has ended, or another worker has it.
 */
export async function batchContent(
  { id, layout, members }: Batch,
  job: Job,
  { mapping, ...route }: Pick<ReadyWarehousePlan, 'transform'> & Pick<WarehousePlan, 'mapping'>,
  { worker, queue, transformer, clock, ready }: ContentContext & { ready: number },
): Promise<BatchContent | null> {
  const objects = new BatchObjects(id, readLayout(layout), mapping);
  const unsent: UnsentMember[] = [];
  const until = clock.now() + makingMs;
  const turn = loopTurns.of(job.target.org, job.target.destinationId);
  const warnings: string[] = [];
  let written = 0;
  for await (const { member, event, warning = null, unsent: why } of eventsToWrite(members.slice(0, ready), job, route, {
    queue,
    transformer,
  })) {
    if (clock.now() > until && !objects.isEmpty) break;
    const added = event === undefined ? null : await turn.runShort(objects.add({ ...event, eventId: member.eventId }));
    if (added === 'full') break;
    written++;
    if (added === 'added' && warning !== null) warnings.push(`event ${member.eventId}: ${warning}`);
    const reason = unwrittenReason(added);
    if (reason !== null) unsent.push({ messageKey: member.messageKey, status: 'transform_failed', reason });
    if (added === null && !member.isUnsent) unsent.push(unsentMember(member, why ?? null));
  }
  if (unsent.length > 0 && !(await queue.leaveOut(job, unsent))) return null;
  const [last, first] = [members[written - 1], members[written]];
  if (last !== undefined && first !== undefined && !(await queue.cut(worker, job, { last, first }))) return null;
  return { objects: objects.take(), warning: joinedWarning(warnings) };
}

/** A batch has one attempt: it contains the first warning, and their number. */
function joinedWarning([first, ...more]: readonly string[]): string | null {
  if (first === undefined || more.length === 0) return first ?? null;
  return `${first}; and of ${more.length} other event${more.length === 1 ? '' : 's'} of the batch`;
}

/** Returns why an event has no record; null: it has one, or no longer exists. */
function unwrittenReason(added: Added | null): string | null {
  if (added === null || added === 'added' || added === 'full') return null;
  return typeof added === 'string' ? reasons[added] : added.unreadable;
}

const reasons = {
  unwritable: 'the record would have more than 16 MiB, or is nested too deeply',
  costly: 'a path of the field mapping takes too long for this event',
};

/** A member neither an event nor known to be unsent is gone. */
type EventToWrite = { member: BatchMember } & Partial<Transformed>;

async function* eventsToWrite(
  members: readonly BatchMember[],
  { target }: Job,
  { transform }: Pick<ReadyWarehousePlan, 'transform'>,
  { queue, transformer }: Pick<ContentContext, 'queue' | 'transformer'>,
): AsyncGenerator<EventToWrite> {
  const isTransformed = ({ hasOutput }: BatchMember): boolean => transform !== null || hasOutput;
  const perRead = members.some(isTransformed) ? outputsPerRead : membersPerRead;
  for (let first = 0; first < members.length; first += perRead) {
    const some = members.slice(first, first + perRead);
    const events = await queue.events(some);
    const found = some.map(async (member, i): Promise<EventToWrite> => {
      const stored = events[i];
      if (stored == null || member.isUnsent) return { member };
      const tooLarge = tooLargeToWrite(stored);
      if (tooLarge !== null) return { member, unsent: tooLarge };
      const event = withKeptHeaders(stored);
      if (!isTransformed(member)) return { member, event, warning: null };
      return { member, ...(await transformer.transformed({ ...member, target }, event, null, queue)) };
    });
    yield* await Promise.all(found);
  }
}
