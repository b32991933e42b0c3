import { PosthornError } from '../../core/errors.ts';
import { decodeEvent, type StoredEvent } from '../shard/event-text.ts';
import { recordId } from '../shard/record-key.ts';
import { bytes, integer, list, text } from '../shard/script-reply.ts';
import { batchMarker } from './batch-reply.ts';
import type { FailoverReason, Job, Target } from './delivery-queue.ts';

/** From `{number, org, route, destination, revision or '', generation of the circuit, 1 for slow, 1 for in order}`. */
export function targetOf(reply: unknown): Target {
  const [number, org, route, destination, revision, circuit, slow, order] = list(reply).map(text);
  return {
    number: number ?? '',
    org: org ?? '',
    routeId: route ?? '',
    destinationId: destination ?? '',
    revision: revision === undefined || revision === '' ? null : revision,
    circuitGeneration: Number(circuit ?? '0'),
    isSlow: slow === '1',
    isInOrder: order === '1',
  };
}

/**
 * From the reply of `includes/jobs.lua`, read as bytes. `loadEvent` loads texts that were too large for the reply;
 * it returns null when the event is gone.
 */
export async function jobsOf(
  shard: number,
  [targetList, lines, texts]: readonly unknown[],
  loadEvent: (eventKey: string) => Promise<Buffer | null>,
): Promise<Job[]> {
  const targets = new Map(
    list(targetList)
      .map(targetOf)
      .map((target) => [target.number, target]),
  );
  const jobLines = text(lines)
    .split('\n')
    .filter((line) => line !== '')
    .map(jobLine);
  const events = await eventsOf(jobLines, list(texts), loadEvent);
  const jobs: Job[] = [];
  for (const [lane, entry, messageKey, attempts, max, event, before, original, why, output, transform] of jobLines) {
    const target = targets.get(lane.replace('r', ''));
    if (target === undefined) continue;
    jobs.push({
      handle: `${lane}/${entry}`,
      target,
      messageKey,
      messageId: recordId('msg_', shard, messageKey),
      eventId: recordId('evt_', shard, event),
      attempts: integer(attempts),
      maxAttempts: integer(max),
      attemptsElsewhere: before === '' ? null : integer(before),
      failover: original === '' ? null : failoverOf(original, why),
      event: events.get(event) ?? null,
      hasOutput: output === '1',
      transformId: transform || null,
      isBatch: event === batchMarker,
    });
  }
  return jobs;
}

type JobLine = [
  lane: string,
  entry: string,
  message: string,
  attempts: string,
  max: string,
  event: string,
  before: string,
  original: string,
  why: string,
  output: string,
  transform: string,
];

function jobLine(line: string): JobLine {
  const parts = line.split(' ');
  if (isJobLine(parts)) return parts;
  throw new PosthornError('INTERNAL', `a script has answered a job in ${parts.length} parts`);
}

function isJobLine(parts: readonly string[]): parts is JobLine {
  return parts.length === 11;
}

/** The events that the jobs name, by their keys; the texts come in the same order. */
async function eventsOf(
  jobLines: readonly JobLine[],
  texts: readonly unknown[],
  loadEvent: (eventKey: string) => Promise<Buffer | null>,
): Promise<Map<string, StoredEvent | null>> {
  const events = new Map<string, StoredEvent | null>();
  for (const [, , , , , key] of jobLines) {
    if (key === batchMarker || events.has(key)) continue;
    const inReply = bytes(texts[events.size]);
    const loaded = inReply.length > 0 ? inReply : await loadEvent(key);
    events.set(key, loaded === null ? null : readable(loaded));
  }
  return events;
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
  'queue_limit_exceeded',
  'destination_not_found',
  'destination_unavailable',
]);

function failoverOf(originalDestinationId: string, why: string): Job['failover'] {
  for (const reason of failoverReasons) if (reason === why) return { originalDestinationId, reason };
  throw new PosthornError('INTERNAL', `a message has moved for the unknown reason ${why}`);
}
