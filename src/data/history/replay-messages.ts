import { z } from 'zod';
import { derivedTimedId } from '../../core/ids.ts';
import { RedisFullError } from '../../core/redis-full-error.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { homeShard, recordKey } from '../shard/record-key.ts';
import { list } from '../shard/script-reply.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';

const replayScript = new ShardScript(new URL('./replay.lua', import.meta.url));
/** So that Redis serves others in between. One call replays its messages whole or not at all. */
export const replaysPerCall = 50;

/** Why the target of a paced replay takes no message now. */
export type TargetObstacle = 'disabled' | 'circuit' | 'target_full';
/** `payload`: the payload of the event is gone. `gone`: there is no such message, or no target for it. `ordered`: its target takes no paced replay, because it sends in order. */
export type ReplayOutcome = 'done' | 'gone' | 'payload' | 'ordered' | TargetObstacle;

const obstacle = z.enum(['disabled', 'circuit', 'target_full']);
const outcome = z.union([
  z.literal('payload'),
  z.literal('gone'),
  z.literal('ordered'),
  obstacle,
  z.literal(1).transform(() => 'done' as const),
]);

/** Returns the id of the message that replays another one. Every process derives the same id. `id`: of the intent or replay. */
export function replayId({ id, beganAtMs }: { id: string; beganAtMs: number }, messageId: string): string {
  return derivedTimedId('msg_', homeShard(messageId) ?? 0, beganAtMs, `${id} ${messageId}`);
}

/** How a replay is paced. */
export interface ReplayPace {
  /** Maximum messages that wait at a target. */
  maxWaiting: number;
  /** The destination to which all of them go instead, once and without failover; the caller checks whether it accepts them. */
  elsewhere?: { destinationId: string; shard: number } | undefined;
}

/**
 * Replays messages that have their home in a shard; may be repeated, and then has the same outcomes. `pace` absent: all are replayed at once. Throws UNAVAILABLE, also when Redis is nearly full; then it may be done in part.
 */
export async function replayMessages(
  { redis, prefix }: { redis: RedisClient; prefix: string },
  shard: number,
  pairs: readonly { id: string; newId: string }[],
  pace?: ReplayPace,
): Promise<ReplayOutcome[]> {
  const elsewhere = pace?.elsewhere === undefined ? '' : `${pace.elsewhere.shard}/${pace.elsewhere.destinationId}`;
  const outcomes: ReplayOutcome[] = [];
  for (let first = 0; first < pairs.length; first += replaysPerCall) {
    const some = pairs.slice(first, first + replaysPerCall);
    const messages = some.map(({ id, newId }) => ({ old: recordKey(id, shard) ?? '', new: recordKey(newId, shard) ?? '', id }));
    const reply = await replayScript
      .run(redis, shardKeys(prefix, shard).declared, [namedArgument({ maxWaiting: pace?.maxWaiting, elsewhere, messages })])
      .catch(throwUnavailable);
    if (reply === 'full') throw new RedisFullError();
    outcomes.push(...list(reply).map((each) => outcome.parse(each)));
  }
  return outcomes;
}
