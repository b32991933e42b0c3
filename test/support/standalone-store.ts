import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { encryptionKeys } from '../../src/cmd/config-values.ts';
import { Keyring } from '../../src/core/sealing.ts';
import { blockingConnection, commandConnection } from '../../src/redis/connection.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { defaultBlockMs, RedisStore } from '../../src/store/redis/redis-store.ts';
import type { CompleteStore } from '../../src/store/store.ts';

/** The resources of a running standalone, read beside it as its own processes read them. */
export async function openStandaloneStore(dataDirectory: string): Promise<{ store: CompleteStore; close(): void }> {
  const url = join(dataDirectory, 'redis', 'redis.sock');
  const redis = commandConnection(url, { name: 'posthorn-test' });
  redis.on('error', () => {});
  await redis.connect();
  const keyring = new Keyring(encryptionKeys.parse(readFileSync(join(dataDirectory, 'encryption-keys'), 'utf8')));
  const store = new RedisStore({
    redis,
    openBlocking: () => blockingConnection(url, { blockMs: defaultBlockMs }),
    keyring,
    clock: systemClock,
  });
  return {
    store,
    close: () => {
      store.close();
      redis.disconnect();
    },
  };
}
