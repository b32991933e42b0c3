import type { ConnectedProcess } from '../../data/membership/connected-processes.ts';
import type { KnownWorker } from '../../data/membership/worker-directory.ts';
import type { QueueFigures } from '../../data/queue/delivery-queue.ts';
import type { ServerFacts } from '../../redis/server-facts.ts';

/** What operators see of the installation. The functions read when they are called, and reject when they cannot. */
export interface InstallationReader {
  /** Name of the installation and of the organization that it begins with. */
  name: string;
  version: string;
  /** Layout of the data that this release knows. */
  layout: number;
  mode: 'standalone' | 'cluster';
  /** Where its DeliveryPools are; null in standalone. */
  namespace: string | null;
  redisMode(): 'single' | 'cluster';
  /** The limit of memory where Redis has none; null: none is set. */
  memoryLimitBytes: number | null;
  redis(): Promise<ServerFacts[]>;
  /** What is wrong with the settings of Redis. */
  redisComplaints(): Promise<string[]>;
  /** Some of the workers, and how many there are. */
  workers(): Promise<{ total: number; workers: KnownWorker[] }>;
  processes(): Promise<ConnectedProcess[]>;
  /** How many shards there are, and the figures of the first of them. */
  shards(): Promise<{ total: number; figures: QueueFigures[] }>;
}
