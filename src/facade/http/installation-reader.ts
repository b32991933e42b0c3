import type { ConnectedProcess } from '../../data/membership/connected-processes.ts';
import type { PoolReport } from '../../data/membership/pool-reports.ts';
import type { ProcessReport } from '../../data/membership/process-reports.ts';
import type { KnownWorkers } from '../../data/membership/worker-directory.ts';
import type { QueueStats } from '../../data/queue/delivery-queue.ts';
import type { ServerFacts } from '../../redis/server-facts.ts';

/** State of the installation for operators. The functions read when they are called, and reject when they cannot. */
export interface InstallationReader {
  /** Name of the installation and of the organization that it begins with. */
  name: string;
  version: string;
  /** Layout of the data that this release supports. */
  layout: number;
  mode: 'standalone' | 'cluster';
  /** Where its DeliveryPools are; null: nowhere, or unknown to the process. */
  namespace: string | null;
  redisMode(): 'single' | 'sentinel' | 'cluster';
  /** The limit of memory where Redis has none; null: none is set. */
  memoryLimitBytes: number | null;
  /** `silent`: addresses of the primaries that do not answer. */
  redis(): Promise<{ servers: ServerFacts[]; silent: string[] }>;
  /** Some of the workers, and how many there are. */
  workers(): Promise<KnownWorkers>;
  /** Null: there are no DeliveryPools, or no controller has reported them lately. */
  pools(): Promise<PoolReport[] | null>;
  processes(): Promise<ConnectedProcess[]>;
  /** Reports of the processes that have something to report. */
  reports(): Promise<ProcessReport[]>;
  /** How many shards there are, and the figures of the first of them. */
  shards(): Promise<{ total: number; figures: QueueStats[] }>;
}
