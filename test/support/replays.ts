import type { Clock } from '../../src/core/clock.ts';
import { newTimedId } from '../../src/core/ids.ts';
import type { ReplayRecord } from '../../src/core/replay-record.ts';
import { RedisMessageReader } from '../../src/data/history/message-reader.ts';
import type { QuotaSteps } from '../../src/data/intake/quota-steps.ts';
import { ByteShares } from '../../src/data/queue/byte-shares.ts';
import { Circuits } from '../../src/data/queue/circuits.ts';
import type { Outcome, TargetSetting } from '../../src/data/queue/delivery-queue.ts';
import { RedisMessageAcceptor } from '../../src/data/queue/message-acceptor.ts';
import { OutboxCarrier } from '../../src/data/queue/outbox-carrier.ts';
import { OwnEventLog } from '../../src/data/queue/own-event-log.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { type EventRouting, replayPayloadMemory } from '../../src/data/replays/event-originals.ts';
import { RedisReplayRuns } from '../../src/data/replays/redis-replay-runs.ts';
import { ReplayCandidates } from '../../src/data/replays/replay-candidates.ts';
import { ReplayFeed } from '../../src/data/replays/replay-feed.ts';
import { type Advance, ReplaySteps, type StepOptions } from '../../src/data/replays/replay-steps.ts';
import { WebhookMessages } from '../../src/data/webhooks/webhook-messages.ts';
import type { RedisClient } from '../../src/redis/connection.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { allPages } from './all-pages.ts';
import { lenientClock } from './lenient-clock.ts';
import { newEvent } from './new-event.ts';
import { dead, delivered, settleAll, takeFrom } from './queue-worker.ts';
import { startRedis } from './redis.ts';
import { targetSetting } from './target-setting.ts';

/** A replay of the dead letters of `org_a`, unless overridden. */
export function replayRecord(changes: Partial<ReplayRecord> = {}): ReplayRecord {
  return {
    v: 1,
    id: 'rep_a',
    org: 'org_a',
    slug: 'replay',
    uid: 'uid_a',
    identity: 'identity_a',
    what: 'deliveries',
    filter: { statuses: ['dlq'] },
    ratePerSecond: 1000,
    isDryRun: false,
    isSuspended: false,
    isCancelled: false,
    createdAtMs: Date.now(),
    generation: 1,
    ...changes,
  };
}

/** The clock of a process that dies at one of its commands. It is stopped, so the number of commands does not depend on their duration. */
const stillClock: Clock = { ...systemClock, now: () => 0 };

const routesNowhere: EventRouting = { targets: async () => [], target: async () => null };

interface PartsOptions {
  prefix: string;
  shards: number;
  clock?: Clock;
  /** Keeps the rows of the live feed a second apart; default: the clock. */
  feedClock?: Clock;
  routing?: EventRouting;
  hasOwnSource?: boolean;
  quotaSteps?: Pick<QuotaSteps, 'reached'>;
}

/** What carries replays on, over a connection to Redis. */
export function replayParts(client: RedisClient, options: PartsOptions) {
  const { prefix, shards, clock = systemClock, routing = routesNowhere, hasOwnSource = false, quotaSteps } = options;
  const reading = { redis: client, prefix, shards: () => shards };
  const runs = new RedisReplayRuns({ ...reading, ...(quotaSteps && { quotaSteps }) });
  const events = new RedisMessageReader(reading);
  const payloadMemory = replayPayloadMemory();
  const steps = new ReplaySteps({
    redis: client,
    prefix,
    shards,
    runs,
    feed: new ReplayFeed({ redis: client, prefix, shards, clock: options.feedClock ?? clock }),
    candidates: new ReplayCandidates({ deliveries: events, messages: new WebhookMessages(reading), routing, payloadMemory }),
    payloadMemory,
    events,
    routing,
    acceptor: new RedisMessageAcceptor({ redis: client, prefix, clock: lenientClock }),
    shares: new ByteShares({ ...reading, clock }),
    circuits: new Circuits(reading),
    carrier: new OutboxCarrier({ redis: client, prefix }),
    notes: new OwnEventLog(reading),
    hasOwnSource: async () => hasOwnSource,
    clock,
    lookEveryMs: 0,
  });
  return { runs, steps };
}

/** Advances a replay until it has ended or can do nothing for now. */
export async function carryOn(
  steps: ReplaySteps,
  record: ReplayRecord,
  { monthlyMessages = null, most = 100, ...options }: Partial<StepOptions> = {},
): Promise<Advance['outcome']> {
  for (;;) {
    const { outcome } = await steps.advance(record, { most, monthlyMessages, ...options });
    if (outcome !== 'progress') return outcome;
  }
}

/** Dead letters and others of `org_a` on a Redis of their own, in two shards, with a worker `w1` by hand. */
export async function startReplayWorld(prefix: string) {
  const shards = 2;
  const redis = await startRedis();
  const reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => shards });
  const queues = [0, 1].map((shard) => new RedisDeliveryQueue({ redis: redis.client, prefix, shard }));
  const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  const parts = (client: RedisClient = redis.client, own: Pick<PartsOptions, 'routing' | 'hasOwnSource' | 'quotaSteps'> = {}) =>
    replayParts(client, { prefix, shards, ...(client !== redis.client && { feedClock: stillClock }), ...own });

  async function endAll(outcome: Outcome = delivered, setting: Partial<TargetSetting> = {}): Promise<void> {
    for (const queue of queues)
      for (let jobs = await takeFrom(queue, 'w1', 64, setting); jobs.length > 0; jobs = await takeFrom(queue, 'w1', 64, setting))
        await settleAll(queue, 'w1', jobs, outcome);
  }

  return {
    redis,
    acceptor,
    shards,
    reader,
    queues,
    parts,
    endAll,
    runOf: (record: ReplayRecord) => parts().runs.find(record.org, record.identity),
    /** All messages that are replays. */
    replays: async () =>
      (await allPages((page) => reader.deliveries('org_a', {}, page), 100)).filter(({ replayedFrom }) => replayedFrom !== null),
    empty: async (): Promise<void> => {
      await redis.client.flushall();
      for (const queue of queues) await queue.refreshShard('w1', 1000);
    },
    /** Events with a message to `dst_<shard>` each, which ends like this; ids of the messages. */
    endedMessages: async (places: readonly number[], outcome: Outcome = dead, setting: Partial<TargetSetting> = {}): Promise<string[]> => {
      const ids: string[] = [];
      for (const shard of places) {
        const messageId = newTimedId('msg_', shard, Date.now());
        ids.push(messageId);
        const targets = [{ messageId, routeId: 'rte_a', destinationId: `dst_${shard}`, shard, maxAttempts: 3 }];
        await acceptor.accept(newEvent({ id: newTimedId('evt_', shard, Date.now()), targets }));
        // Each message has its own millisecond. The number of pages that a list reads varies where two shards have messages of the same one.
        for (const acceptedAtMs = Date.now(); Date.now() === acceptedAtMs; ) await new Promise(setImmediate);
      }
      await endAll(outcome, setting);
      return ids;
    },
    configure: async (shard: number, setting: Partial<TargetSetting>): Promise<void> => {
      for (const target of (await queues[shard]?.targets(0))?.targets ?? []) await queues[shard]?.configure(target, targetSetting(setting));
    },
    /** Until the replay has ended, with a worker that ends what it queues. */
    toTheEnd: async (
      record: ReplayRecord,
      outcome: Outcome = delivered,
      { client, ...options }: Partial<StepOptions> & { client?: RedisClient } = {},
    ) => {
      const { steps } = parts(client);
      while ((await carryOn(steps, record, options)) !== 'ended') await endAll(outcome);
    },
  };
}
