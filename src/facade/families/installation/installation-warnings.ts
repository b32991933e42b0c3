import type { ConnectedProcess } from '../../../data/membership/connected-processes.ts';
import type { PoolReport } from '../../../data/membership/pool-reports.ts';
import { type KnownWorker, type KnownWorkers, workerLifetimeMs } from '../../../data/membership/worker-directory.ts';
import type { QueueStats } from '../../../data/queue/delivery-queue.ts';
import type { ServerFacts } from '../../../redis/server-facts.ts';

/** A problem with what the operator can do about it. */
export interface Warning {
  part: 'redis' | 'pools' | 'workers' | 'processes' | 'resources' | 'shards';
  message: string;
  action: string;
}

/** The limit of `QUEUE_FULL` and of early pruning (docs/operations.md). */
const pruningShare = 0.6;
const refusingShare = 0.8;
const longOutboxMs = 60_000;
/** Conditions of a DeliveryPool that a rollout does not make False. */
const obstacles: ReadonlySet<string> = new Set(['Accepted', 'Available', 'Autoscaling']);

export function redisWarnings(servers: readonly ServerFacts[], silent: readonly string[], memoryLimitBytes: number | null): Warning[] {
  const warning = (message: string, action: string): Warning => ({ part: 'redis', message, action });
  return [
    ...silent.map((address) =>
      warning(`The Redis server ${address} does not answer.`, 'Look whether it runs and whether the network reaches it.'),
    ),
    ...servers.flatMap((server) => {
      const { address, evictionPolicy, appendOnly, isSaving } = server;
      const found = fullness(server, memoryLimitBytes);
      if (evictionPolicy !== '' && evictionPolicy !== 'noeviction')
        found.push([`has maxmemory-policy ${evictionPolicy}, which drops messages.`, 'Set maxmemory-policy noeviction.']);
      if (!appendOnly)
        found.push(['writes no append-only file. A restart loses what came after its last snapshot.', 'Set appendonly yes.']);
      if (!isSaving)
        found.push(['could not write its data to disk. A restart loses what was not written.', 'Look at the disk and the log of Redis.']);
      return found.map(([what, action]) => warning(`The Redis server ${address} ${what}`, action));
    }),
  ];
}

/** Warns about the memory of Redis. */
function fullness(server: ServerFacts, memoryLimitBytes: number | null): [what: string, action: string][] {
  const share = memoryShare(server, memoryLimitBytes);
  if (share === null)
    return [
      ['has no limit of memory, so that history is not pruned before memory runs out.', 'Set maxmemory or POSTHORN_REDIS_MEMORY_LIMIT.'],
    ];
  if (share < pruningShare) return [];
  const effect = share >= refusingShare ? 'New events are refused with 503.' : 'History is removed before the end of its retention.';
  return [
    [
      `uses ${Math.floor(share * 100)} % of its memory limit. ${effect}`,
      'Raise maxmemory, shorten the retention, or find the target whose messages pile up.',
    ],
  ];
}

/** Returns the used part of the memory limit of a server, 0 to 1; null: there is no limit. */
function memoryShare({ usedBytes, limitBytes }: ServerFacts, memoryLimitBytes: number | null): number | null {
  const limit = limitBytes ?? memoryLimitBytes;
  return limit === null ? null : usedBytes / limit;
}

export function isAlive({ seenAtMs }: KnownWorker, nowMs: number): boolean {
  return seenAtMs !== null && nowMs - seenAtMs <= workerLifetimeMs;
}

/** `pools` null: no controller has reported them lately. */
export function poolWarnings(pools: readonly PoolReport[] | null, namespace: string): Warning[] {
  if (pools === null)
    return [
      {
        part: 'pools',
        message: 'There is no report of the DeliveryPools in the last minute. Their replicas and conditions are unknown.',
        action: 'See whether a controller leads, and whether all controllers run this version.',
      },
    ];
  return pools.flatMap(({ name, conditions }) =>
    conditions
      .filter(({ type, status, reason }) => obstacles.has(type) && status === 'False' && reason !== 'Draining')
      .map(({ type, message, reason }) => ({
        part: 'pools' as const,
        message: `The DeliveryPool ${name} has ${type}=False: ${message === '' ? reason : message.replace(/\.$/, '')}.`,
        action: `Look at the status of the DeliveryPool: kubectl -n ${namespace} describe dpool ${name}.`,
      })),
  );
}

export function workerWarnings({ workers, nowMs }: KnownWorkers): Warning[] {
  const dead = workers.filter((worker) => worker.seenAtMs !== null && !isAlive(worker, nowMs));
  if (!workers.some((worker) => isAlive(worker, nowMs)))
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
      message: `Processes of another release are connected, which uses another layout of the data: ${shown.join(', ')}${others.length > shown.length ? ` and ${others.length - shown.length} more` : ''}.`,
      action: 'Finish the upgrade of all roles, then run posthorn migrate.',
    },
  ];
}

export function shardWarnings(figures: readonly QueueStats[]): Warning[] {
  return figures.flatMap(({ outboxEntries, outboxAgeMs }, shard) =>
    outboxEntries === 0 || outboxAgeMs < longOutboxMs
      ? []
      : [
          {
            part: 'shards' as const,
            message: `Messages from shard ${shard} to other shards have waited for ${Math.floor(outboxAgeMs / 1000)} s.`,
            action: 'See whether workers are alive and all nodes of Redis answer.',
          },
        ],
  );
}
