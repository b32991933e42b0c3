import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import type { FindDeletedIds } from '../shard/messages.ts';
import { integer } from '../shard/script-reply.ts';
import { type ShardKeys, shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';

const forgetTargets = new ShardScript(new URL('./forget-targets.lua', import.meta.url));
const fieldsPerStep = 200;
const targetsPerStep = 50;

interface Options {
  redis: RedisClient;
  prefix: string;
  shards: number;
}

/**
 * Removes an organization's counters of deleted objects from the shards, and the targets of these objects that have no messages. Works in small steps.
 * Returns the numbers of removed counters and targets. Throws UNAVAILABLE; rejects once the signal aborts.
 */
export async function removeDeletedCounters(
  { redis, prefix, shards }: Options,
  org: string,
  findDeleted: FindDeletedIds,
  signal: AbortSignal,
): Promise<number> {
  let forgotten = 0;
  for (let shard = 0; shard < shards; shard++) {
    const keys = shardKeys(prefix, shard);
    for await (const fields of stepsOf(redis, keys.counters(org), signal)) {
      const ids = fields.map((field) => field.replace(totals, ''));
      const gone = await findDeleted(ids);
      const deleted = fields.filter((_, i) => gone.has(ids[i] ?? ''));
      if (deleted.length > 0) forgotten += await redis.hdel(keys.counters(org), ...deleted).catch(throwUnavailable);
    }
    for await (const names of stepsOf(redis, keys.targetNumbers(org), signal))
      forgotten += await forgetTargetsOf({ redis, keys, org }, names, findDeleted);
  }
  return forgotten;
}

/** Prefix of `core/webhook.ts` for the id of an application. */
const totals = /^total:/;

async function forgetTargetsOf(
  { redis, keys, org }: { redis: RedisClient; keys: ShardKeys; org: string },
  names: readonly string[],
  findDeleted: FindDeletedIds,
): Promise<number> {
  const targets = names.map((name) => name.split(' '));
  const gone = await findDeleted(targets.flat().filter((id) => id !== ''));
  const args = targets
    .filter(([route = '', destination = '']) => gone.has(route) || gone.has(destination))
    .map(([route = '', destination = '']) => ({
      route,
      destination,
      isRouteGone: gone.has(route),
      isDestinationGone: gone.has(destination),
    }));
  let forgotten = 0;
  for (let first = 0; first < args.length; first += targetsPerStep) {
    const some = namedArgument({ org, targets: args.slice(first, first + targetsPerStep) });
    forgotten += integer(await forgetTargets.run(redis, keys.declared, [some]).catch(throwUnavailable));
  }
  return forgotten;
}

/** The fields of a hash, some at a time. */
async function* stepsOf(redis: RedisClient, key: string, signal: AbortSignal): AsyncGenerator<string[]> {
  for (let cursor = '0'; ; ) {
    signal.throwIfAborted();
    const [next, found] = await redis.hscan(key, cursor, 'COUNT', fieldsPerStep).catch(throwUnavailable);
    const fields = found.filter((_, i) => i % 2 === 0);
    if (fields.length > 0) yield fields;
    if (next === '0') return;
    cursor = next;
  }
}
