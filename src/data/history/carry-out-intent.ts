import type { Clock } from '../../core/clock.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { recordKey } from '../shard/record-key.ts';
import { list } from '../shard/script-reply.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';
import { type Intent, MessageIntents } from './message-intents.ts';
import { replayId, replayMessages } from './replay-messages.ts';

const archiveScript = new ShardScript(new URL('./archive-dead-letter.lua', import.meta.url));

/** `payload`: that of its event is gone. `gone`: there is no such message or, of one to be archived, it is no dead letter. */
export type MessageResult = 'done' | 'gone' | 'payload';

interface World {
  redis: RedisClient;
  prefix: string;
  clock: Clock;
}

/**
 * Executes an intent, in steps of one shard each, which may be repeated with the same results. Throws UNAVAILABLE; it may be done in
 * part then.
 */
export async function carryOut(world: World, intent: Intent): Promise<Map<string, MessageResult>> {
  const results = await Promise.all(
    intent.messages.map(async ([shard, ids]) => {
      const each = intent.action === 'archive' ? await archiveIn(world, shard, ids) : await replayIn(world, shard, intent, ids);
      return ids.map((id, i): [string, MessageResult] => [id, each[i] ?? 'gone']);
    }),
  );
  return new Map(results.flat());
}

/** Executes a recorded intent, and ends it. */
export async function finishIntent(world: World, account: string, intent: Intent): Promise<Map<string, MessageResult>> {
  const results = await carryOut(world, intent);
  const done = [...results].flatMap(([id, result]) => (result === 'done' ? [id] : []));
  await new MessageIntents(world).end(account, intent, done);
  return results;
}

/** In one step. */
export async function archiveIn({ redis, prefix }: World, shard: number, ids: readonly string[]): Promise<MessageResult[]> {
  const keys = ids.map((id) => recordKey(id, shard) ?? '');
  const reply = await archiveScript.run(redis, shardKeys(prefix, shard).declared, keys).catch(throwUnavailable);
  return list(reply).map((each) => (each === 1 ? 'done' : 'gone'));
}

async function replayIn(world: World, shard: number, intent: Intent, ids: readonly string[]): Promise<MessageResult[]> {
  const outcomes = await replayMessages(
    world,
    shard,
    ids.map((id) => ({ id, newId: replayId(intent, id) })),
  );
  return outcomes.map((outcome) => (outcome === 'done' || outcome === 'payload' ? outcome : 'gone'));
}
