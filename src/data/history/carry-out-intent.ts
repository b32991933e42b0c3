import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { derivedTimedId } from '../../core/ids.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { Script } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { homeShard, recordKey } from '../shard/record-key.ts';
import { list } from '../shard/script-reply.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { type Intent, MessageIntents } from './message-intents.ts';

const replayScript = new Script(new URL('./replay.lua', import.meta.url));
const archiveScript = new Script(new URL('./archive-dead-letter.lua', import.meta.url));
const fullRetrySeconds = 10;
/** So that Redis serves others in between. */
const replaysPerCall = 50;

/** `payload`: that of its event is gone. `gone`: there is no such message or, of one to be archived, it is no dead letter. */
export type MessageResult = 'done' | 'gone' | 'payload';

interface World {
  redis: RedisClient;
  prefix: string;
  clock: Clock;
}

/** The id that the replay of a message has, whoever makes it. */
export function replayId({ id, beganAtMs }: Pick<Intent, 'id' | 'beganAtMs'>, messageId: string): string {
  return derivedTimedId('msg_', homeShard(messageId) ?? 0, beganAtMs, `${id} ${messageId}`);
}

/**
 * Does what an intent says, in steps of one shard each, which may be repeated and then have the same results. Throws UNAVAILABLE; it may be done in
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

/** Carries out an intent that was noted, and ends it. */
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

async function replayIn({ redis, prefix }: World, shard: number, intent: Intent, ids: readonly string[]): Promise<MessageResult[]> {
  const results: MessageResult[] = [];
  for (let first = 0; first < ids.length; first += replaysPerCall) {
    const some = ids.slice(first, first + replaysPerCall);
    const args = some.flatMap((id) => [recordKey(id, shard) ?? '', recordKey(replayId(intent, id), shard) ?? '', id]);
    const reply = await replayScript.run(redis, shardKeys(prefix, shard).declared, args).catch(throwUnavailable);
    if (reply === 'full') throw nearlyFull();
    results.push(...list(reply).map((each) => (each === 1 ? 'done' : each === 'payload' ? 'payload' : 'gone')));
  }
  return results;
}

export function nearlyFull(): PosthornError {
  return new PosthornError('UNAVAILABLE', 'Redis is nearly full', { retryAfterSeconds: fullRetrySeconds });
}
