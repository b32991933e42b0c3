import type { Clock } from '../../core/clock.ts';
import type { TransformRecord } from '../../core/records.ts';
import type { Batch, BatchMember, Job } from '../../data/queue/delivery-queue.ts';
import type { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import { DeadlineError } from '../targets/http/http-exchange.ts';
import { maxBatchBytes } from '../targets/warehouse/batch-objects.ts';
import { withKeptHeaders } from './kept-event-headers.ts';
import { type EventTransformer, TransformUnavailableError } from './transformed-event.ts';
import { tooLargeToWrite, unsentMember } from './unsent-member.ts';

/** Each runs before its wait in the sandbox is too long, even when all of them are aborted there. */
const atATime = 4;
/** With the upload that follows, well below the visibility timeout of the batch. */
const defaultTimeoutMs = 20_000;

/** Error: not one transform of a batch has ended in a whole pass. */
export class TransformsStalledError extends DeadlineError {}

export interface TransformContext {
  queue: RedisDeliveryQueue;
  transformer: EventTransformer;
  clock: Clock;
  /** Breaks the pass off. */
  signal: AbortSignal;
  timeoutMs?: number;
}

/**
 * Runs the route's transform for those members of a batch that have no output yet, the oldest first, until the outputs are as much as a
 * batch may have. Each output is stored, and each member without one recorded, as soon as it is known: what is done in one pass need not
 * be done in the next. Returns how many members, from the oldest on, may be written now; null when the batch has ended. The first failure, or
 * the deadline, ends the pass: it rejects with `TransformsStalledError` when no transform has come to an end in it, with what was met
 * when some have, or when Redis is to blame.
 */
export async function runBatchTransforms(
  { members }: Batch,
  job: Job,
  transform: TransformRecord,
  { queue, transformer, clock, signal, timeoutMs = defaultTimeoutMs }: TransformContext,
): Promise<number | null> {
  const undecided = await undecidedMembers(members, job, queue);
  const ending = new AbortController();
  let [next, decided, bytes, hasEnded] = [0, 0, 0, false];
  const work = async (): Promise<void> => {
    while (bytes < maxBatchBytes && !hasEnded && !ending.signal.aborted) {
      const member = members[undecided[next] ?? members.length];
      if (member === undefined) return;
      next++;
      const size = await decide(member);
      if (size === null) hasEnded = true;
      else bytes += size;
      decided++;
    }
  };
  /** The size of the member's output; null when the batch has ended. */
  const decide = async (member: BatchMember): Promise<number | null> => {
    const [event] = await queue.events([member]);
    const sent = event && withKeptHeaders(event);
    const tooLarge = sent ? tooLargeToWrite(sent) : null;
    if (tooLarge !== null) return (await queue.leaveOut(job, [unsentMember(member, tooLarge)])) ? 0 : null;
    const made = sent && (await transformer.transformed({ ...member, target: job.target }, sent, transform, queue));
    if (made?.event !== undefined) return made.event.payload.length;
    return (await queue.leaveOut(job, [unsentMember(member, made?.unsent ?? null)])) ? 0 : null;
  };
  const stop = (): void => ending.abort(new Error('the worker stops'));
  const cancelDeadline = clock.after(timeoutMs, () => ending.abort(new DeadlineError('the transforms of the batch take longer')));
  signal.addEventListener('abort', stop);
  try {
    const failed = new Promise<never>((_, reject) => ending.signal.addEventListener('abort', () => reject(ending.signal.reason)));
    const workers = Array.from({ length: atATime }, () => work().catch((error: unknown) => ending.abort(error)));
    if (signal.aborted) stop();
    await Promise.race([Promise.all(workers), failed]);
  } catch (error) {
    const isSandbox = error instanceof DeadlineError || error instanceof TransformUnavailableError;
    if (!isSandbox || decided > 0 || signal.aborted) throw error;
    throw new TransformsStalledError(`no transform of the batch has come to an end: ${error.message}`);
  } finally {
    cancelDeadline();
    signal.removeEventListener('abort', stop);
  }
  return hasEnded ? null : (undecided[next] ?? members.length);
}

async function undecidedMembers(members: readonly BatchMember[], { target }: Job, queue: RedisDeliveryQueue): Promise<number[]> {
  const hasOutput = await queue.haveOutputs(target, members);
  return members.flatMap(({ isUnsent }, at) => (isUnsent || hasOutput[at] === true ? [] : [at]));
}
