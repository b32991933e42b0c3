import { Keyring } from '../core/sealing.ts';
import { resealRecords } from '../data/registry/reseal-records.ts';
import { requireOwnStore } from '../data/registry/store-installation.ts';
import { resealWebhooks } from '../data/webhooks/reseal-webhooks.ts';
import { resealSecrets } from '../facade/records/reseal-secrets.ts';
import type { RedisClient } from '../redis/connection.ts';
import { systemClock } from '../runtime/system-clock.ts';
import { RedisStore } from '../store/redis/redis-store.ts';
import { resealObjects } from '../store/redis/reseal-objects.ts';
import type { CompleteStore } from '../store/store.ts';
import type { Config } from './config.ts';
import { withRedis } from './with-redis.ts';

/** Values written while it runs may be sealed under the old key, by a process that has not got the new one yet. */
const maxPasses = 6;
/** A controller that has read a record before it was resealed publishes it a moment later as it was: so nothing is left only when a later check confirms it. */
const laterMs = 3000;

/**
 * Seals everything that is stored sealed under the newest key: Secrets made by the API, in Kubernetes or Redis, published records, and webhook endpoints.
 * Writes a line for each value that does not open and one of figures. Returns the exit code: 0 when nothing is left under another key, 1
 * otherwise. It can be stopped and repeated at any time.
 */
export async function rekey(config: Config, write: (line: string) => void): Promise<number> {
  const { redisKeyPrefix: prefix, installation } = config;
  const keyring = new Keyring(config.encryptionKeys);
  const complaints = new Set<string>();
  const report = (complaint: string): void => void complaints.add(complaint);
  return await withRedis(config, { name: 'posthorn-rekey' }, async (redis) => {
    await requireOwnStore({ redis, prefix }, installation);
    const { store, close } = await openStore(config, redis, keyring);
    const figures = { secrets: 0, stored: 0, records: 0, endpoints: 0 };
    let changed = 0;
    let wasClean = false;
    try {
      for (let pass = 1; pass <= maxPasses; pass++) {
        const secrets = await resealSecrets({ store, keyring, installation }, report);
        const stored = config.resourceStore === 'redis' ? await resealObjects({ redis, prefix, keyring, report }) : 0;
        const records = await resealRecords({ redis, prefix, keyring, report });
        const endpoints = await resealWebhooks({ redis, prefix, keyring, report });
        figures.secrets += secrets;
        figures.stored += stored;
        figures.records += records;
        figures.endpoints += endpoints;
        changed = secrets + stored + records + endpoints;
        if (changed === 0 && wasClean) break;
        wasClean = changed === 0;
        if (wasClean) await systemClock.sleep(laterMs);
      }
    } finally {
      await close();
    }
    for (const complaint of complaints) write(complaint);
    const { secrets, stored, records, endpoints } = figures;
    write(
      `resealed: ${secrets} secrets, ${stored} stored objects, ${records} records, ${endpoints} webhook endpoints; ${complaints.size} did not open`,
    );
    if (changed > 0) write('values are still being sealed under an older key: give all processes the new one, then run this again');
    return complaints.size === 0 && changed === 0 ? 0 : 1;
  });
}

async function openStore(config: Config, redis: RedisClient, keyring: Keyring): Promise<{ store: CompleteStore; close(): Promise<void> }> {
  const clock = systemClock;
  if (config.resourceStore === 'redis') {
    const openBlocking = (): never => {
      throw new Error('rekey follows no changes');
    };
    const store = new RedisStore({ redis, openBlocking, keyring, clock, prefix: config.redisKeyPrefix });
    return { store, close: async () => store.close() };
  }
  const [{ connectKubernetes }, { KubernetesStore }] = await Promise.all([
    import('./kubernetes.ts'),
    import('../store/kubernetes/kubernetes-store.ts'),
  ]);
  const api = connectKubernetes(config, clock);
  return { store: new KubernetesStore({ api, clock }), close: () => api.close() };
}
