import { recountUnfinished } from '../data/check/unfinished-check.ts';
import { earlierProcesses } from '../data/membership/connected-processes.ts';
import { agreeOnShards } from '../data/membership/shard-count.ts';
import { noteLayout, storeLayout } from '../data/registry/store-layout.ts';
import type { RedisClient } from '../redis/connection.ts';
import { systemClock } from '../runtime/system-clock.ts';
import type { Config } from './config.ts';
import { withRedis } from './with-redis.ts';

/** No caller waits for it, so it has more patience with a busy Redis than a role. */
const commandTimeoutMs = 10_000;

interface Place {
  redis: RedisClient;
  prefix: string;
}

/**
 * Brings what is in Redis from the layout before into that of this release, while processes of this release work; returns what it has done, as a line.
 * It can die at any write and is repeated from its beginning, also where nothing is left to do.
 */
export type MigrationStep = (place: Place & { shards: number }) => Promise<string>;

/** In their order. One that the layout before needed goes with the next layout. */
export const migrationSteps: readonly MigrationStep[] = [
  async (place) => `unfinished bytes in ${place.shards} shards: ${await recountUnfinished(place)} figures corrected`,
];

/**
 * Migrates the data of the previous release, in Redis and in the API server, to the form of this one, and records the completion in Redis. It can be stopped
 * and repeated at any time, while processes of this release work. Writes what it has done, a line each. Returns the exit code: 0 when all is in the
 * layout of this release; 1 when processes of an earlier release are running, and then nothing is migrated, or when an object cannot be
 * stored again. Throws UNAVAILABLE, and INVALID_CONFIG where a later release has been here (the program then exits with 2).
 */
export async function migrate(config: Config, write: (line: string) => void): Promise<number> {
  return await withRedis(config, { name: 'posthorn-migrate', commandTimeoutMs }, async (redis) => {
    const migrateApi = async () => config.resourceStore !== 'kubernetes' || (await migrateObjects(config, write));
    return await migrateStore({ redis, prefix: config.redisKeyPrefix }, migrationSteps, write, migrateApi);
  });
}

/** `migrateApi` follows the steps: whether it has come to its end. Returns and throws as `migrate` does. */
export async function migrateStore(
  place: Place,
  steps: readonly MigrationStep[],
  write: (line: string) => void,
  migrateApi: () => Promise<boolean> = async () => true,
): Promise<number> {
  if (await hasEarlierProcesses(place, write)) return 1;
  await noteLayout(place, 'begun');
  // A process that started before the layout was written is connected by then.
  if (await hasEarlierProcesses(place, write)) return 1;
  const shards = Math.max(1, await agreeOnShards({ ...place, known: 0 }));
  for (const step of steps) write(await step({ ...place, shards }));
  if (!(await migrateApi())) return 1;
  await noteLayout(place, 'done');
  write(`everything is in layout ${storeLayout}`);
  return 0;
}

async function hasEarlierProcesses(place: Place, write: (line: string) => void): Promise<boolean> {
  const processes = await earlierProcesses(place);
  for (const each of processes) write(`a process of an earlier release is connected to Redis: ${each}`);
  if (processes.length > 0) write('nothing is migrated while they run: replace them, then run this again');
  return processes.length > 0;
}

/** Returns whether all objects are stored in the version of today. */
async function migrateObjects(config: Config, write: (line: string) => void): Promise<boolean> {
  const [{ connectKubernetes }, { migrateStoredVersions }] = await Promise.all([
    import('./kubernetes.ts'),
    import('../store/kubernetes/stored-versions.ts'),
  ]);
  const clock = systemClock;
  const api = connectKubernetes(config, clock);
  const complaints: string[] = [];
  try {
    const migrated = await migrateStoredVersions({ api, clock, report: (complaint) => void complaints.push(complaint) });
    for (const complaint of complaints) write(complaint);
    write(`custom resources: ${migrated} kinds stored again in the version of today; ${complaints.length} complaints`);
    return complaints.length === 0;
  } finally {
    await api.close();
  }
}
