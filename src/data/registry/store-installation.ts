import { PosthornError } from '../../core/errors.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { registryKeys } from './registry-keys.ts';
import { isReadableLayout } from './store-layout.ts';

interface Place {
  redis: RedisClient;
  prefix: string;
}

/** The keys that `claimStore` and `requireOwnStore` read. */
export const claimKeys = (prefix: string): readonly string[] => [registryKeys(prefix).installation, registryKeys(prefix).layout];

/**
 * Records the installation of the data below the prefix; the first one stays. Data in the layout of a later release is not claimed. Throws INVALID_CONFIG when it is another's, whose records these
 * controllers would retract, and UNAVAILABLE when Redis does not answer.
 */
export async function claimStore({ redis, prefix }: Place, installation: string): Promise<void> {
  if (!isReadableLayout(await redis.get(registryKeys(prefix).layout).catch(throwUnavailable)))
    return await requireOwnStore({ redis, prefix }, installation);
  refuseOther(prefix, await redis.set(registryKeys(prefix).installation, installation, 'NX', 'GET').catch(throwUnavailable), installation);
}

/**
 * Throws as `claimStore` does, and writes nothing: for those who work with what the controllers have published. A store that no controller has claimed
 * yet is everybody's.
 */
export async function requireOwnStore({ redis, prefix }: Place, installation: string): Promise<void> {
  refuseOther(prefix, await redis.get(registryKeys(prefix).installation).catch(throwUnavailable), installation);
}

function refuseOther(prefix: string, noted: string | null, installation: string): void {
  if (noted === null || noted === installation) return;
  throw new PosthornError(
    'INVALID_CONFIG',
    `what is in Redis below the key prefix ${JSON.stringify(prefix)} belongs to the installation ${noted}, and POSTHORN_INSTALLATION is ${installation}: each installation needs a Redis or a key prefix of its own`,
  );
}
