import { PosthornError } from '../../core/errors.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { registryKeys } from './registry-keys.ts';

/**
 * Notes for which installation the data below the prefix is; the first one stays. Throws INVALID_CONFIG when it is another's, whose records these
 * controllers would retract, and UNAVAILABLE when Redis does not answer.
 */
export async function claimStore({ redis, prefix }: { redis: RedisClient; prefix: string }, installation: string): Promise<void> {
  const key = registryKeys(prefix).installation;
  const before = await redis.set(key, installation, 'NX', 'GET').catch(throwUnavailable);
  if (before === null || before === installation) return;
  throw new PosthornError(
    'INVALID_CONFIG',
    `what is in Redis below the key prefix ${JSON.stringify(prefix)} is of the installation ${before}, and POSTHORN_INSTALLATION is ${installation}: each installation needs a Redis or a key prefix of its own`,
  );
}
