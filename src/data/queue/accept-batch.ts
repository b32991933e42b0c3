import { PosthornError } from '../../core/errors.ts';
import { inParts } from '../../core/in-parts.ts';
import type { ScriptArgument } from '../../redis/script.ts';
import { encodeEvent } from '../shard/event-text.ts';
import type { NewEvent } from '../shard/messages.ts';
import { packedResults } from '../shard/packed-results.ts';
import type { ChunkedPayload } from '../shard/payload-chunks.ts';
import { recordKey } from '../shard/record-key.ts';

/** More targets than this are more than one event may have. */
const largestFanOut = 10_000;
/**
 * Most targets of an event whose messages here are made when it is accepted; those of one with more all go through the outbox. The same is true of
 * messages that break the schemas of their routes.
 */
export const messagesAtOnce = 100;
/** How many messages one script call makes of an event with more, in about 1 ms. */
export const messagesPerCall = 10;
/** How many messages that break the schemas of their routes one script call makes of an event with more than `messagesAtOnce`, in about 1 ms. */
export const invalidPerCall = 20;

/** Filter results, which share a record, that take as long as writing one record. */
const resultsPerRecord = 20;

/** A message, here or in the outbox, about. */
const bytesPerLine = 160;

type Target = NewEvent['targets'][number];
type Invalid = NewEvent['invalid'][number];

const none: readonly never[] = [];
/** Arguments of an event whose targets are all known, and that has no answer to keep. */
const noneFurther = { from: '-', end: '-' };
const noAnswer = { keptMs: '-', text: '' };

/**
 * Arguments of the accept script for one event, their size in bytes, and how much it has to write: a record or an entry of the outbox
 * weighs 1. Throws INTERNAL
 * for an event with more targets than an event may have, and for ids that are none. `chunked`: where its payload is, that of `event` being empty.
 */
export function acceptArguments(
  event: NewEvent,
  shard: number,
  chunked: ChunkedPayload | null = null,
): { args: ScriptArgument[]; bytes: number; weight: number } {
  const records = event.targets.length + event.invalid.length + event.filtered.length;
  if (records > largestFanOut) {
    throw new PosthornError('INTERNAL', `an event has ${records} targets, and at most ${largestFanOut} can be stored`);
  }
  const encoded = encodeEvent(event);
  const { targets, further = noneFurther, answer = noAnswer } = event;
  const atOnce = targets.length > messagesAtOnce ? none : targets.filter((target) => target.shard === shard);
  const isSplit = atOnce.length > 0 && atOnce.length < targets.length;
  const later = isSplit ? targets.filter((target) => target.shard !== shard) : atOnce.length > 0 ? none : targets;
  const entries = later.length === 0 ? [] : outboxEntries(later, shard);
  const invalid = event.invalid.length > messagesAtOnce ? none : event.invalid;
  const invalidLater = invalid === none ? event.invalid : none;
  const invalidEntries = inParts(invalidLater, invalidPerCall);
  const entryCount = entries.length + invalidEntries.length;
  const counts = `${atOnce.length} ${invalid.length} ${event.filtered.length} ${entryCount}`;
  const head = `${keyOf(event.id, shard)} ${event.org} ${event.sourceId} ${counts} ${further.from} ${further.end} ${answer.keptMs}${chunked === null ? '' : ` ${chunked.token}/${chunked.bytes}`}`;
  const args: ScriptArgument[] = [head, encoded];
  if (event.answer !== undefined) args.push(answer.text);
  for (const target of atOnce) args.push(lineOf(target, shard));
  for (const each of invalid) args.push(invalidLineOf(each, shard), each.brokenSchema);
  const packed = event.filtered.length === 0 ? null : packedResults(event.filtered);
  if (packed !== null) args.push(packed.text, packed.routes);
  for (const { shard: to, count, lines } of entries) args.push(to, to === shard ? 1 : 0, count, lines);
  let reasonBytes = 0;
  for (const some of invalidEntries) {
    const reasons = JSON.stringify(some.map(({ brokenSchema }) => brokenSchema));
    reasonBytes += reasons.length;
    args.push('-', 1, some.length, some.map((each) => invalidLineOf(each, shard)).join('\n'), reasons);
  }
  if (entryCount > 0) {
    // Applications are counted where their messages are made.
    const routes = new Set(event.webhook === undefined ? later.map(({ routeId }) => routeId) : []);
    args.push([...later, ...invalidLater].map(({ messageId }) => keyOf(messageId, shard)).join(' '), routes.size, ...routes);
  }
  const lines = (atOnce.length + later.length + invalidLater.length) * bytesPerLine;
  const bytes = encoded.length + answer.text.length + args.length * 32 + lines + reasonBytes + 2 * (packed?.text.length ?? 0);
  const weight =
    1 + atOnce.length + invalid.length + (packed === null ? 0 : 1 + Math.ceil(event.filtered.length / resultsPerRecord)) + entryCount;
  return { args, bytes, weight };
}

/** Messages as stored in the outbox of a shard (`includes/outbox.lua`), each entry for one shard. */
export function outboxEntries(targets: readonly Target[], shard: number): { shard: number; count: number; lines: string }[] {
  return [...Map.groupBy(targets, (target) => target.shard)].flatMap(([to, group]) =>
    inParts(group, messagesPerCall).map((some) => {
      const lines = some.map((target) => lineOf(target, shard));
      return { shard: to, count: some.length, lines: lines.join('\n') };
    }),
  );
}

/**
 * Message, route, destination and the largest number of attempts with the times of the message, then subscription and transform where there are
 * (`includes/new-message.lua`).
 */
function lineOf(target: Target, shard: number): string {
  const { messageId, routeId, destinationId, maxAttempts, subscription } = target;
  const line = `${keyOf(messageId, shard)} ${routeId} ${destinationId} ${maxAttempts}${timesOf(target)}`;
  if (subscription === undefined) return line;
  const { id, transformId } = subscription;
  return transformId === null ? `${line} ${id}` : `${line} ${id} ${transformId}`;
}

/** When the first attempt is made at the earliest, behind `b`, absent: at once; and when the message expires, behind `x`, absent: never. */
function timesOf({ notBeforeMs, expiresAtMs }: Target): string {
  const earliest = notBeforeMs === undefined ? '' : `;b${notBeforeMs}`;
  return expiresAtMs === undefined ? earliest : `${earliest};x${expiresAtMs}`;
}

/** A message that breaks the schema of its route, as in `includes/invalid-message.lua`. */
function invalidLineOf({ messageId, routeId, failedFor = '-' }: Invalid, shard: number): string {
  return `${keyOf(messageId, shard)} ${routeId} ${failedFor}`;
}

function keyOf(id: string, shard: number): string {
  const key = recordKey(id, shard);
  if (key === null) throw new PosthornError('INTERNAL', `${id} is not an id of a record`);
  return key;
}
