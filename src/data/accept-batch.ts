import { PosthornError } from '../core/errors.ts';
import type { ScriptArgument } from '../redis/script.ts';
import { encodeEvent } from './event-text.ts';
import type { NewEvent } from './messages.ts';
import { recordKey } from './record-key.ts';

/** More targets than this would hold Redis up for too long in one script. */
const largestFanOut = 1000;

/**
 * Arguments of the accept script for one event, and their size in bytes. Throws INTERNAL for ids of another shard and for an
 * event with more targets than one script call may take.
 */
export function acceptArguments(event: NewEvent, shard: number): { args: ScriptArgument[]; bytes: number } {
  if (event.targets.length + event.filtered.length > largestFanOut) {
    throw new PosthornError('INTERNAL', `an event has ${event.targets.length} targets, and at most ${largestFanOut} can be stored`);
  }
  const encoded = encodeEvent(event);
  const args: ScriptArgument[] = [keyOf(event.id, shard), event.org, event.sourceId, encoded, event.targets.length];
  for (const target of event.targets) {
    if (target.shard !== shard)
      throw new PosthornError('INTERNAL', `target ${target.destinationId} lives in shard ${target.shard}, not ${shard}`);
    args.push(keyOf(target.messageId, shard), target.routeId, target.destinationId, target.maxAttempts);
  }
  args.push(event.filtered.length);
  for (const filtered of event.filtered) args.push(keyOf(filtered.messageId, shard), filtered.routeId);
  return { args, bytes: encoded.length + args.length * 32 };
}

function keyOf(id: string, shard: number): string {
  const key = recordKey(id, shard);
  if (key === null) throw new PosthornError('INTERNAL', `${id} is not an id of shard ${shard}`);
  return key;
}
