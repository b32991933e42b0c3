import type { Job, Target } from './delivery-queue.ts';
import { decodeEvent, type StoredEvent } from './event-text.ts';
import { recordId } from './record-key.ts';
import { bytes, integer, list, text } from './script-reply.ts';

/** From `{number, org, route, destination, generation or ''}`. */
export function targetOf(reply: unknown): Target {
  const [number, org, route, destination, generation] = list(reply).map(text);
  return {
    number: number ?? '',
    org: org ?? '',
    routeId: route ?? '',
    destinationId: destination ?? '',
    generation: generation === undefined || generation === '' ? null : Number(generation),
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
    events.set(text(key), loaded === null ? null : decodeEvent(loaded));
  }
  return list(jobList).flatMap((each) => {
    const [number, entry, message, attempts, max, event] = list(each);
    const target = targets.get(text(number));
    if (target === undefined) return [];
    return {
      handle: `${target.number}/${text(entry)}`,
      target,
      messageKey: text(message),
      messageId: recordId('msg_', shard, text(message)),
      eventId: recordId('evt_', shard, text(event)),
      attempts: integer(attempts),
      maxAttempts: integer(max),
      event: events.get(text(event)) ?? null,
    };
  });
}
