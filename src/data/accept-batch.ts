import { PosthornError } from '../core/errors.ts';
import type { ScriptArgument } from '../redis/script.ts';
import { encodeEvent } from './event-text.ts';
import type { NewEvent } from './messages.ts';
import { recordKey } from './record-key.ts';

/** More targets than this are more than one event may have. */
const largestFanOut = 10_000;
/** Of an event with no more targets the messages here are made when it is accepted; those of one with more all go through the outbox. */
export const messagesAtOnce = 100;
/** How many messages one script call makes of an event with more, in about 1 ms. */
export const messagesPerCall = 10;

/** A message in the outbox, about. */
const bytesPerLine = 160;

type Target = NewEvent['targets'][number];

/**
 * Arguments of the accept script for one event, their size in bytes, and how much it has to write: a record or an entry of the outbox
 * weighs 1. Throws INTERNAL
 * for an event with more targets than an event may have, and for ids that are none.
 */
export function acceptArguments(event: NewEvent, shard: number): { args: ScriptArgument[]; bytes: number; weight: number } {
  if (event.targets.length + event.filtered.length > largestFanOut) {
    throw new PosthornError('INTERNAL', `an event has ${event.targets.length} targets, and at most ${largestFanOut} can be stored`);
  }
  const encoded = encodeEvent(event);
  const atOnce = event.targets.length > messagesAtOnce ? [] : event.targets.filter((target) => target.shard === shard);
  const args: ScriptArgument[] = [keyOf(event.id, shard), event.org, event.sourceId, encoded];
  args.push(...targetArguments(atOnce, shard), event.filtered.length);
  for (const filtered of event.filtered)
    args.push(keyOf(filtered.messageId, shard), filtered.routeId, endOf(filtered), filtered.failedFor ?? '');
  const later = atOnce.length === 0 ? event.targets : event.targets.filter((target) => target.shard !== shard);
  const entries = outboxEntries(later, shard);
  args.push(entries.length);
  for (const { shard: to, count, lines } of entries) args.push(to, to === shard ? 1 : 0, count, lines);
  if (entries.length > 0) {
    // Applications are counted where their messages are made.
    const routes = new Set(event.webhook === undefined ? later.map(({ routeId }) => routeId) : []);
    args.push(later.map(({ messageId }) => keyOf(messageId, shard)).join(' '), routes.size, ...routes);
  }
  args.push(event.further === undefined ? '' : `${event.further.from} ${event.further.end}`);
  const answer = event.answer === undefined ? '' : `${event.answer.keptMs} ${event.answer.text}`;
  args.push(answer);
  const bytes = encoded.length + answer.length + args.length * 32 + later.length * bytesPerLine;
  const weight = 1 + atOnce.length + event.filtered.length + entries.length;
  return { args, bytes, weight };
}

/** The letter of its status, and why. */
function endOf({ brokenSchema, untried = '' }: NewEvent['filtered'][number]): string {
  return brokenSchema === undefined ? `f${untried}` : `v${brokenSchema}`;
}

/** Messages as they stand in the outbox of a shard (`includes/outbox.lua`), each entry for one shard. */
export function outboxEntries(targets: readonly Target[], shard: number): { shard: number; count: number; lines: string }[] {
  return [...Map.groupBy(targets, (target) => target.shard)].flatMap(([to, group]) =>
    chunks(group).map((some) => {
      const lines = some.map((target) =>
        [keyOf(target.messageId, shard), target.routeId, target.destinationId, settingOf(target)].join(' '),
      );
      return { shard: to, count: some.length, lines: lines.join('\n') };
    }),
  );
}

function targetArguments(targets: readonly Target[], shard: number): ScriptArgument[] {
  const each = targets.flatMap((target) => [keyOf(target.messageId, shard), target.routeId, target.destinationId, settingOf(target)]);
  return [targets.length, ...each];
}

/** The largest number of attempts, then subscription and transform where there are (`includes/new-message.lua`). */
function settingOf({ maxAttempts, subscription }: Target): ScriptArgument {
  if (subscription === undefined) return maxAttempts;
  const { id, transformId } = subscription;
  return transformId === null ? `${maxAttempts} ${id}` : `${maxAttempts} ${id} ${transformId}`;
}

function chunks(targets: readonly Target[]): Target[][] {
  return Array.from({ length: Math.ceil(targets.length / messagesPerCall) }, (_, i) =>
    targets.slice(i * messagesPerCall, (i + 1) * messagesPerCall),
  );
}

function keyOf(id: string, shard: number): string {
  const key = recordKey(id, shard);
  if (key === null) throw new PosthornError('INTERNAL', `${id} is not an id of a record`);
  return key;
}
