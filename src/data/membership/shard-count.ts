import type { RedisClient } from '../../redis/connection.ts';
import { Script } from '../../redis/script.ts';
import { redisUnavailable } from '../../redis/unavailable.ts';
import { integer } from '../shard/script-reply.ts';
import { workerKeys } from './worker-directory.ts';

const growScript = new Script(new URL('./shards-grow.lua', import.meta.url));

/** Number of shards: the maximum over all processes. Throws UNAVAILABLE when Redis does not answer. */
export async function agreeOnShards({ redis, prefix, known }: { redis: RedisClient; prefix: string; known: number }): Promise<number> {
  try {
    return integer(await growScript.run(redis, [workerKeys(prefix).shards], [known]));
  } catch (error) {
    throw redisUnavailable(error);
  }
}
