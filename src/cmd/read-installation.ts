import { sharedCall } from '../core/shared-call.ts';
import { connectedProcesses } from '../data/membership/connected-processes.ts';
import { PoolReports } from '../data/membership/pool-reports.ts';
import { ProcessReports } from '../data/membership/process-reports.ts';
import { knownWorkers } from '../data/membership/worker-directory.ts';
import { RedisDeliveryQueue } from '../data/queue/redis-delivery-queue.ts';
import { storeLayout } from '../data/registry/store-layout.ts';
import type { InstallationReader } from '../facade/http/installation-reader.ts';
import type { RedisClient } from '../redis/connection.ts';
import { redisMode, serverFacts } from '../redis/server-facts.ts';
import { version } from './version.ts';

const maxWorkers = 200;
const maxShards = 64;

export interface InstallationReaderOptions {
  redis: RedisClient;
  prefix: string;
  shards: () => number;
  memoryLimitBytes: number | undefined;
  /** Name of the installation. */
  name: string;
  mode: 'standalone' | 'cluster';
  /** The namespace of its DeliveryPools; null: none, or unknown. */
  namespace: string | null;
}

export function installationReader(options: InstallationReaderOptions): InstallationReader {
  const { redis, prefix, shards, memoryLimitBytes, name, mode, namespace } = options;
  return {
    name,
    version,
    layout: storeLayout,
    mode,
    namespace,
    redisMode: () => redisMode(redis),
    memoryLimitBytes: memoryLimitBytes ?? null,
    redis: sharedCall(() => serverFacts(redis)),
    workers: sharedCall(() => knownWorkers({ redis, prefix }, maxWorkers)),
    pools: sharedCall(async () => (namespace === null ? null : await new PoolReports({ redis, prefix }).read())),
    processes: sharedCall(() => connectedProcesses({ redis, prefix })),
    reports: sharedCall(() => new ProcessReports({ redis, prefix }).read()),
    shards: sharedCall(async () => {
      const total = shards();
      const seen = Array.from({ length: Math.min(total, maxShards) }, (_, shard) => new RedisDeliveryQueue({ redis, prefix, shard }));
      return { total, figures: await Promise.all(seen.map((queue) => queue.figures())) };
    }),
  };
}
