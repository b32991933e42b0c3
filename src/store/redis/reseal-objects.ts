import type { Keyring } from '../../core/sealing.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { rewriteHash } from '../../redis/rewrite-hash.ts';
import { ObjectCodec } from './codec.ts';
import { StoreKeys } from './store-keys.ts';

/** Seals all Secrets that live in Redis under the newest key; their versions stay. Returns how many changed; `report` gets what does not open. */
export function resealObjects(options: {
  redis: RedisClient;
  prefix: string;
  keyring: Keyring;
  report: (complaint: string) => void;
}): Promise<number> {
  const { redis, prefix, keyring, report } = options;
  const codec = new ObjectCodec(keyring);
  return rewriteHash(redis, new StoreKeys(prefix).objects('Secret'), (member, stored) => {
    try {
      return codec.reseal(stored);
    } catch (error) {
      report(`Secret ${member} does not open: ${error instanceof Error ? error.message : error}`);
      return null;
    }
  });
}
