import { z } from 'zod';
import type { Clock } from '../../../core/clock.ts';
import { isPosthornError } from '../../../core/errors.ts';
import type { PoolReport } from '../../../data/membership/pool-reports.ts';
import type { KnownWorker, KnownWorkers } from '../../../data/membership/worker-directory.ts';
import { poolOfWorker } from '../../../data/shard/pool-suffix.ts';
import type { InstallationReader } from '../../http/installation-reader.ts';
import { type Call, type Family, operation } from '../../http/operation.ts';
import { isoTime, isoTimeOrNull, timestamp } from '../../records/record-fields.ts';
import { requireOperator } from './installation-access.ts';
import {
  isAlive,
  poolWarnings,
  processWarnings,
  redisWarnings,
  shardWarnings,
  type Warning,
  workerWarnings,
} from './installation-warnings.ts';
import { reportWarnings } from './process-warnings.ts';
import { runningVersion, versionsOf, versionWarnings } from './running-versions.ts';

const count = z.int().min(0);
const part = z.enum(['redis', 'pools', 'workers', 'processes', 'resources', 'shards']);

const replicas = z.object({
  wanted: count.describe('Desired pods of the pool.'),
  ready: count.describe('Pods that are ready.'),
});
const condition = z.object({
  type: z.string().describe('Type of the condition, such as `Ready`.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether it holds.'),
  reason: z.string().describe('Why, as one word.'),
  message: z.string().describe('Why, in words.'),
  lastTransitionTime: timestamp.describe('When the status last changed.'),
});
const pool = z.object({
  name: z.string().describe('Name of the pool.'),
  workers: count.describe('Its living workers among those listed.'),
  slots: count.describe('Attempts that they can run at the same time.'),
  replicas: replicas
    .nullable()
    .describe(
      'Replicas of the DeliveryPool; null: there is none, as in standalone; no controller has reported it within a minute; or it has no status yet.',
    ),
  conditions: z.array(condition).nullable().describe('Conditions of the DeliveryPool; null as `replicas`.'),
});
const worker = z.object({
  id: z.string().describe('Id of the worker.'),
  pool: z.string().describe('Its pool.'),
  isAlive: z.boolean().describe('False: it misses its heartbeats, or has ended.'),
  slots: count.nullable().describe('Attempts that it can run at the same time; null: it is ending.'),
  version: z.string().nullable().describe('Version of Posthorn that it runs; null: its release does not report it.'),
  lastSeenAt: timestamp.nullable().describe('Its last heartbeat; null: it has ended.'),
});
const processOf = z.object({
  role: z.string().describe('Role of the process.'),
  address: z.string().describe('Where it connects from.'),
  layout: count.describe('Layout of the data of its release.'),
  version: z.string().nullable().describe('Version of Posthorn that it runs; null: its release does not report it.'),
  connectedSeconds: count.describe('For how long it is connected.'),
});
const shard = z.object({
  shard: count.describe('Number of the shard.'),
  unfinished: count.describe('Messages that have not ended.'),
  retriesWaiting: count.describe('Messages that wait for their next attempt.'),
  scheduled: count.describe('Messages scheduled for later.'),
  processing: count.describe('Messages that a worker holds.'),
  deadLetters: count.describe('Dead letters.'),
  outboxEntries: count.describe('Entries that wait for another shard.'),
});
const server = z.object({
  address: z.string().describe('Host and port, or path of its socket.'),
  version: z.string().describe('Version of Redis.'),
  usedBytes: count.describe('Memory in use.'),
  limitBytes: count.nullable().describe('Its `maxmemory`, else `POSTHORN_REDIS_MEMORY_LIMIT`; null: neither is set.'),
  evictionPolicy: z.string().describe('Its `maxmemory-policy`.'),
  appendOnly: z.boolean().describe('Whether it writes an append-only file.'),
  snapshotAt: timestamp.nullable().describe('Its last snapshot, or its start when it has made none; null: unknown.'),
  replicas: count.describe('Connected replicas.'),
});

const record = z
  .object({
    version: z.string().describe('Version of the responding process.'),
    mode: z.enum(['standalone', 'cluster']).describe('Whether it runs as one process or in Kubernetes.'),
    layout: count.describe('Layout of the data of this release.'),
    versions: z
      .array(runningVersion)
      .describe('Versions of Posthorn that run, the latest first; more than one while a rollout is under way.'),
    pools: z
      .array(pool)
      .nullable()
      .describe(
        'Pools of the listed workers, and in Kubernetes the first 200 DeliveryPools, with or without workers; null: the workers could not be read.',
      ),
    workers: z
      .object({ total: count.describe('Number of workers.'), data: z.array(worker).describe('At most 200.') })
      .nullable()
      .describe('Delivery workers, those seen last first.'),
    processes: z
      .object({ total: count.describe('Number of processes.'), data: z.array(processOf).describe('At most 200.') })
      .nullable()
      .describe('Processes that are connected to Redis.'),
    shards: z
      .object({ total: count.describe('Number of shards.'), data: z.array(shard).describe('The first 64.') })
      .nullable()
      .describe('Shards, with the number of messages in each.'),
    redis: z
      .object({
        mode: z.enum(['single', 'sentinel', 'cluster']).describe('How Posthorn connects to it.'),
        servers: z.array(server).describe('Its primaries that answer.'),
      })
      .nullable()
      .describe('The Redis servers; null: they could not be read.'),
    unread: z
      .array(
        z.object({
          part: part.describe(
            'What is null; of `pools` the replicas and conditions are, and without `resources` the reports of processes are not in `warnings`.',
          ),
          reason: z.string().describe('Why.'),
        }),
      )
      .describe('What could not be read.'),
    warnings: z
      .array(
        z.object({
          part: part.describe('What it is about.'),
          message: z.string().describe('What is wrong.'),
          action: z.string().describe('What to do.'),
        }),
      )
      .describe('What needs an operator.'),
  })
  .meta({ id: 'Installation' });

type Answer = z.input<typeof record>;
type Part = z.output<typeof part>;

const deadlineMs = 3000;
const maxProcesses = 200;

export const installation: Family = {
  name: 'Installation',
  noun: 'installation',
  description: 'The installation, for its operators.',
  operations: [
    operation({
      method: 'GET',
      path: '/installation',
      operationId: 'getInstallation',
      summary: 'Show the installation',
      description:
        'For the key `POSTHORN_API_KEY`, the browser at the machine of standalone, and Kubernetes tokens that may list `deliverypools` in the namespace of the installation. What cannot be read within 3 seconds is null.',
      scope: 'read',
      answer: { status: 200, description: 'What operators see.', schema: record },
      handle: async (call) => {
        await requireOperator(call);
        return await read(call);
      },
    }),
  ],
};

async function read({ services }: Call): Promise<Answer> {
  const { installation: reader, clock, logger } = services;
  const unread: Answer['unread'] = [];
  const inTime = async <T>(of: Part, ask: () => Promise<T>): Promise<T | null> => {
    try {
      return await withDeadline(ask(), clock);
    } catch (error) {
      logger.debug({ err: error, part: of }, 'a part of the installation cannot be read');
      unread.push({ part: of, reason: reasonOf(error) });
      return null;
    }
  };
  const [redis, pools, workers, processes, reports, shards] = await Promise.all([
    inTime('redis', () => reader.redis()),
    inTime('pools', () => reader.pools()),
    inTime('workers', () => reader.workers()),
    inTime('processes', () => reader.processes()),
    inTime('resources', () => reader.reports()),
    inTime('shards', () => reader.shards()),
  ]);
  const isPoolReadable = unread.every((each) => each.part !== 'pools');
  const versions = versionsOf(workers, processes);
  const warnings: Warning[] = [
    ...redisWarnings(redis?.servers ?? [], redis?.silent ?? [], reader.memoryLimitBytes),
    ...(reader.namespace === null || !isPoolReadable ? [] : poolWarnings(pools, reader.namespace)),
    ...(workers === null ? [] : workerWarnings(workers)),
    ...versionWarnings(versions),
    ...processWarnings(processes ?? [], reader.layout),
    ...reportWarnings(reports ?? [], reader.mode),
    ...shardWarnings(shards?.figures ?? []),
  ];
  return {
    version: reader.version,
    mode: reader.mode,
    layout: reader.layout,
    versions,
    pools: workers === null ? null : poolsOf(workers, pools ?? []),
    workers: workers === null ? null : { total: workers.total, data: workers.workers.map((each) => toWorker(each, workers.nowMs)) },
    processes: processes === null ? null : { total: processes.length, data: processes.slice(0, maxProcesses) },
    shards: shards === null ? null : { total: shards.total, data: shards.figures.map(toShard) },
    redis: redis === null ? null : { mode: reader.redisMode(), servers: redis.servers.map((each) => toServer(each, reader)) },
    unread,
    warnings,
  };
}

class TooLate extends Error {}

async function withDeadline<T>(work: Promise<T>, clock: Clock): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const stop = clock.after(deadlineMs, () => reject(new TooLate()));
  try {
    return await Promise.race([work, late]);
  } finally {
    stop();
  }
}

/** Without the error text of a server: it may contain more than is shown. */
function reasonOf(error: unknown): string {
  if (error instanceof TooLate) return `It did not answer within ${deadlineMs / 1000} s.`;
  return isPosthornError(error) ? error.message : 'Redis refused it or did not answer.';
}

function poolsOf({ workers, nowMs }: KnownWorkers, reports: readonly PoolReport[]): z.input<typeof pool>[] {
  const pools = new Map(
    reports.map(({ name, replicas: pods, conditions }): [string, z.input<typeof pool>] => [
      name,
      { name, workers: 0, slots: 0, replicas: pods, conditions },
    ]),
  );
  for (const each of workers) {
    const name = poolOfWorker(each.id);
    const found = pools.get(name) ?? { name, workers: 0, slots: 0, replicas: null, conditions: null };
    const counts = isAlive(each, nowMs);
    pools.set(name, { ...found, workers: found.workers + Number(counts), slots: found.slots + (counts ? (each.slots ?? 0) : 0) });
  }
  return [...pools.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

function toWorker(each: KnownWorker, nowMs: number): z.input<typeof worker> {
  const { id, slots, version, seenAtMs } = each;
  return { id, pool: poolOfWorker(id), isAlive: isAlive(each, nowMs), slots, version, lastSeenAt: isoTimeOrNull(seenAtMs) };
}

type Figures = Awaited<ReturnType<InstallationReader['shards']>>['figures'][number];

function toShard(
  { unfinished, retriesWaiting, scheduled, held, deadLetters, outboxEntries }: Figures,
  index: number,
): z.input<typeof shard> {
  return { shard: index, unfinished, retriesWaiting, scheduled, processing: held, deadLetters, outboxEntries };
}

type Server = Awaited<ReturnType<InstallationReader['redis']>>['servers'][number];

function toServer(each: Server, { memoryLimitBytes }: InstallationReader): z.input<typeof server> {
  const { address, version, usedBytes, limitBytes, evictionPolicy, appendOnly, snapshotAtMs, replicas } = each;
  const snapshotAt = snapshotAtMs === null ? null : isoTime(snapshotAtMs);
  return { address, version, usedBytes, limitBytes: limitBytes ?? memoryLimitBytes, evictionPolicy, appendOnly, snapshotAt, replicas };
}
