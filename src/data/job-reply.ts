import { PosthornError } from '../core/errors.ts';
import type { FailoverReason, Job, Target } from './delivery-queue.ts';
import { decodeEvent, type StoredEvent } from './event-text.ts';
import { recordId } from './record-key.ts';
import { bytes, integer, list, text } from './script-reply.ts';

/** From `{number, org, route, destination, revision or '', generation of the circuit, 1 for slow}`. */
export function targetOf(reply: unknown): Target {
  const [number, org, route, destination, revision, circuit, slow] = list(reply).map(text);
  return {
    number: number ?? '',
    org: org ?? '',
    routeId: route ?? '',
    destinationId: destination ?? '',
    revision: revision === undefined || revision === '' ? null : revision,
    circuitGeneration: Number(circuit ?? '0'),
    isSlow: slow === '1',
  };
}

/**
 * From the reply of `includes/jobs.lua`, read as bytes. `loadEvent` is asked for texts that were too large for the reply;
 * it answers null when the event is gone.
 */
export async function jobsOf(
  shard: number,
  reply: readonly unknown[],
  loadEvent: (eventKey: string) => Promise<Buffer | null>,
): Promise<Job[]> {
  const [targetList, jobList, eventList] = reply;
  const targets = new Map(list(targetList).map((each) => [text(list(each)[0]), targetOf(each)]));
  const events = new Map<string, StoredEvent | null>();
  for (const each of list(eventList)) {
    const [key, stored] = list(each);
    const inReply = bytes(stored);
    const loaded = inReply.length > 0 ? inReply : await loadEvent(text(key));
    events.set(text(key), loaded === null ? null : readable(loaded));
  }
  return list(jobList).flatMap((each) => {
    const [lane, entry, message, attempts, max, event, before, original, why, output, transform] = list(each);
    const target = targets.get(text(lane).replace('r', ''));
    if (target === undefined) return [];
    return {
      handle: `${text(lane)}/${text(entry)}`,
      target,
      messageKey: text(message),
      messageId: recordId('msg_', shard, text(message)),
      eventId: recordId('evt_', shard, text(event)),
      attempts: integer(attempts),
      maxAttempts: integer(max),
      failover: text(original) === '' ? null : failoverOf(text(original), text(why), integer(before)),
      event: events.get(text(event)) ?? null,
      hasOutput: text(output) === '1',
      transformId: text(transform) || null,
      isBatch: text(event) === '*',
    };
  });
}

/** Null for a text that is no event: one message ends as a dead letter, and its neighbours are delivered. */
function readable(stored: Buffer): StoredEvent | null {
  try {
    return decodeEvent(stored);
  } catch {
    return null;
  }
}

const failoverReasons: ReadonlySet<FailoverReason> = new Set([
  'circuit_open',
  'failed_attempts',
  'max_retries_exceeded',
  'secret_decryption_failed',
]);

function failoverOf(originalDestinationId: string, why: string, attemptsBefore: number): Job['failover'] {
  for (const reason of failoverReasons) if (reason === why) return { originalDestinationId, reason, attemptsBefore };
  throw new PosthornError('INTERNAL', `a message has moved for the unknown reason ${why}`);
}
