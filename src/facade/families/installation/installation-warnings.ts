import type { ConnectedProcess } from '../../../data/membership/connected-processes.ts';
import { type KnownWorker, workerLifetimeMs } from '../../../data/membership/worker-directory.ts';
import type { QueueFigures } from '../../../data/queue/delivery-queue.ts';
import type { ServerFacts } from '../../../redis/server-facts.ts';

/** What is wrong, and what an operator does about it. */
export interface Warning {
  part: 'redis' | 'workers' | 'processes' | 'shards';
  message: string;
  action: string;
}

/** As `QUEUE_FULL` and early pruning have it (docs/operations.md). */
const pruningShare = 0.6;
const refusingShare = 0.8;
const longOutboxMs = 60_000;

export function redisWarnings(servers: readonly ServerFacts[], memoryLimitBytes: number | null): Warning[] {
  const warnings: Warning[] = [];
  const warn = (message: string, action: string): void => void warnings.push({ part: 'redis', message, action });
  const share = Math.max(0, ...servers.map((server) => memoryShare(server, memoryLimitBytes) ?? 0));
  if (share >= pruningShare) {
    const effect = share >= refusingShare ? 'New events are refused with 503.' : 'History is removed before the end of its retention.';
    warn(
      `Redis uses ${Math.floor(share * 100)} % of its memory limit. ${effect}`,
      'Raise maxmemory, shorten the retention, or find the target whose messages pile up.',
    );
  }
  if (servers.some(({ appendOnly, snapshotAtMs }) => !appendOnly && snapshotAtMs === null))
    warn('Redis keeps nothing on disk. A restart loses all messages.', 'Set appendonly yes.');
  if (servers.some(({ isSaving }) => !isSaving))
    warn('Redis could not write its data to disk.', 'Look at the disk and the log of Redis: a restart loses what was not written.');
  return warnings;
}

/** Used part of the limit of a server, from 0; null: there is no limit. */
function memoryShare({ usedBytes, limitBytes }: ServerFacts, memoryLimitBytes: number | null): number | null {
  const limit = limitBytes ?? memoryLimitBytes;
  return limit === null ? null : usedBytes / limit;
}

export function isAlive({ seenAtMs }: KnownWorker, nowMs: number): boolean {
  return seenAtMs !== null && nowMs - seenAtMs <= workerLifetimeMs;
}

export function workerWarnings(workers: readonly KnownWorker[], nowMs: number): Warning[] {
  const dead = workers.filter((worker) => worker.seenAtMs !== null && !isAlive(worker, nowMs));
  if (dead.length === workers.length)
    return [
      {
        part: 'workers',
        message: 'No delivery worker is alive. Events are accepted and wait.',
        action: 'Start workers, or look at the log of those that end.',
      },
    ];
  return dead.map(({ id }) => ({
    part: 'workers',
    message: `The worker ${id} misses its heartbeats. Its leases are requeued.`,
    action: 'Look at the log of the worker, and whether it reaches Redis.',
  }));
}

export function processWarnings(processes: readonly ConnectedProcess[], layout: number): Warning[] {
  const others = processes.filter((each) => each.layout !== layout);
  if (others.length === 0) return [];
  const shown = others.slice(0, 5).map((each) => `${each.role} at ${each.address}`);
  return [
    {
      part: 'processes',
      message: `${others.length} processes run another release, which knows another layout of the data: ${shown.join(', ')}.`,
      action: 'Finish the upgrade of all roles, then run posthorn migrate.',
    },
  ];
}

export function shardWarnings(figures: readonly QueueFigures[]): Warning[] {
  return figures.flatMap(({ outboxEntries, outboxAgeMs }, shard) =>
    outboxEntries === 0 || outboxAgeMs < longOutboxMs
      ? []
      : [
          {
            part: 'shards' as const,
            message: `Shard ${shard} has had messages for other shards for ${Math.floor(outboxAgeMs / 1000)} s.`,
            action: 'See whether workers are alive and all nodes of Redis answer.',
          },
        ],
  );
}
