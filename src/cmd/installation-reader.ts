import { isPosthornError } from '../core/errors.ts';
import { connectedProcesses } from '../data/membership/connected-processes.ts';
import { knownWorkers } from '../data/membership/worker-directory.ts';
import { RedisDeliveryQueue } from '../data/queue/redis-delivery-queue.ts';
import { storeLayout } from '../data/registry/store-layout.ts';
import type { InstallationReader } from '../facade/http/installation-reader.ts';
import type { RedisClient } from '../redis/connection.ts';
import { redisMode, serverFacts } from '../redis/server-facts.ts';
import { checkRedisSettings } from './redis-settings.ts';
import { version } from './version.ts';

const maxWorkers = 200;
const maxShards = 64;

export interface InstallationReaderOptions {
  redis: RedisClient;
  prefix: string;
  shards: () => number;
  memoryLimitBytes: number | undefined;
  /** Of the installation. */
  name: string;
  /** In which its DeliveryPools are; null: standalone. */
  namespace: string | null;
}

export function installationReader(options: InstallationReaderOptions): InstallationReader {
  const { redis, prefix, shards, memoryLimitBytes, name, namespace } = options;
  return {
    name,
    version,
    layout: storeLayout,
    mode: namespace === null ? 'standalone' : 'cluster',
    namespace,
    redisMode: () => redisMode(redis),
    memoryLimitBytes: memoryLimitBytes ?? null,
    redis: () => serverFacts(redis),
    redisComplaints: () => complaintsOf(redis, memoryLimitBytes),
    workers: () => knownWorkers({ redis, prefix }, maxWorkers),
    processes: () => connectedProcesses({ redis, prefix }),
    shards: async () => {
      const total = shards();
      const seen = Array.from({ length: Math.min(total, maxShards) }, (_, shard) => new RedisDeliveryQueue({ redis, prefix, shard }));
      return { total, figures: await Promise.all(seen.map((queue) => queue.figures())) };
    },
  };
}

async function complaintsOf(redis: RedisClient, memoryLimitBytes: number | undefined): Promise<string[]> {
  const found = new Set<string>();
  try {
    await checkRedisSettings(redis, { warn: (_fields: unknown, message?: string) => void found.add(message ?? '') }, memoryLimitBytes);
  } catch (error) {
    if (!isPosthornError(error, 'INVALID_CONFIG')) throw error;
    found.add(error.message);
  }
  return [...found];
}
