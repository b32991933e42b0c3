import { PosthornError } from '../core/errors.ts';
import type { ScriptArgument } from '../redis/script.ts';
import { encodeEvent } from './event-text.ts';
import type { NewEvent } from './messages.ts';
import { recordKey } from './record-key.ts';

/** More targets than this are more than one event may have. */
const largestFanOut = 10_000;
/** How many messages one script call makes; what is more goes through the outbox. */
const messagesPerCall = 100;

type Target = NewEvent['targets'][number];

/**
 * Arguments of the accept script for one event, and their size in bytes. Throws INTERNAL
 * for an event with more targets than an event may have, and for ids that are none.
 */
export function acceptArguments(event: NewEvent, shard: number): { args: ScriptArgument[]; bytes: number } {
  if (event.targets.length + event.filtered.length > largestFanOut) {
    throw new PosthornError('INTERNAL', `an event has ${event.targets.length} targets, and at most ${largestFanOut} can be stored`);
  }
  const encoded = encodeEvent(event);
  const here = event.targets.filter((target) => target.shard === shard);
  const args: ScriptArgument[] = [keyOf(event.id, shard), event.org, event.sourceId, encoded];
  args.push(...targetArguments(here.slice(0, messagesPerCall), shard), event.filtered.length);
  for (const filtered of event.filtered) args.push(keyOf(filtered.messageId, shard), filtered.routeId, filtered.brokenSchema ?? '');
  const entries = [...chunks(here.slice(messagesPerCall)), ...otherShards(event.targets, shard).flatMap(chunks)];
  args.push(entries.length);
  for (const entry of entries) {
    const entryShard = entry[0]?.shard ?? shard;
    args.push(entryShard, entryShard === shard ? 1 : 0, ...targetArguments(entry, shard));
  }
  args.push(event.further === undefined ? '' : `${event.further.from} ${event.further.end}`);
  return { args, bytes: encoded.length + args.length * 32 };
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

function otherShards(targets: readonly Target[], shard: number): Target[][] {
  const byShard = Map.groupBy(targets, (target) => target.shard);
  byShard.delete(shard);
  return [...byShard.values()];
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
