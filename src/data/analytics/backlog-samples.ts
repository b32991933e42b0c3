import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { ShardKeys } from '../shard/shard-keys.ts';
import type { BacklogSamples } from './series-scope.ts';

const periodsAtOnce = 50;

/** Samples of the fields in a shard, for each of the periods; null: none. See `../queue/sample-backlogs.lua`. Throws UNAVAILABLE. */
export async function readBacklogSamples(
  redis: RedisClient,
  keys: ShardKeys,
  { org, names, fields }: { org: string; names: readonly string[]; fields: readonly string[] },
): Promise<(BacklogSamples | null)[]> {
  const samples: (BacklogSamples | null)[] = [];
  const read = async (name: string): Promise<BacklogSamples | null> => {
    const [count, stored] = await Promise.all([
      redis.hget(keys.backlogs('', name), hashFields.backlogs.samples),
      redis.hmget(keys.backlogs(org, name), ...fields),
    ]).catch(throwUnavailable);
    if (count === null) return null;
    const values = stored.map((each) => (each ?? '0 0').split(' ').map(Number));
    return {
      count: Number(count),
      sum: values.reduce((sum, [value = 0]) => sum + value, 0),
      oldestAgeMs: Math.max(0, ...values.map(([, ageMs = 0]) => ageMs)),
    };
  };
  for (let first = 0; first < names.length; first += periodsAtOnce)
    samples.push(...(await Promise.all(names.slice(first, first + periodsAtOnce).map(read))));
  return samples;
}
