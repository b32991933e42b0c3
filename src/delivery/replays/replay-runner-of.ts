import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import { RedisMessageReader } from '../../data/history/message-reader.ts';
import { QuotaSteps } from '../../data/intake/quota-steps.ts';
import type { ByteShares } from '../../data/queue/byte-shares.ts';
import { Circuits } from '../../data/queue/circuits.ts';
import type { OutboxCarrier } from '../../data/queue/outbox-carrier.ts';
import { OwnEventLog } from '../../data/queue/own-event-log.ts';
import { hasOwnSource } from '../../data/registry/own-sources.ts';
import type { RegistryReader } from '../../data/registry/registry.ts';
import { RedisRegistryPublisher } from '../../data/registry/registry-publisher.ts';
import { type EventRouting, replayPayloadMemory } from '../../data/replays/event-originals.ts';
import { RedisReplayRuns } from '../../data/replays/redis-replay-runs.ts';
import { ReplayCandidates } from '../../data/replays/replay-candidates.ts';
import { ReplayFeed } from '../../data/replays/replay-feed.ts';
import { ReplaySteps } from '../../data/replays/replay-steps.ts';
import type { MessageAcceptor } from '../../data/shard/messages.ts';
import { WebhookMessages } from '../../data/webhooks/webhook-messages.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { ReplayRunner } from './replay-runner.ts';

/** Evaluates and accepts events again. */
export interface EventReplays {
  routing: EventRouting;
  acceptor: MessageAcceptor;
}

/** The runner of a worker. */
export function replayRunnerOf(options: {
  redis: RedisClient;
  prefix: string;
  /** How many there are. */
  shards: number;
  shares: ByteShares;
  events: EventReplays;
  carrier: OutboxCarrier;
  registry: RegistryReader;
  worker: string;
  clock: Clock;
  logger: Logger;
}): ReplayRunner {
  const { redis, prefix, shards, events, registry, logger } = options;
  const reading = { redis, prefix, shards: () => shards };
  const runs = new RedisReplayRuns({ ...reading, quotaSteps: new QuotaSteps({ ...reading, registry, logger }) });
  const deliveries = new RedisMessageReader(reading);
  const payloadMemory = replayPayloadMemory();
  const messages = new WebhookMessages(reading);
  const candidates = new ReplayCandidates({ deliveries, messages, routing: events.routing, payloadMemory });
  const steps = new ReplaySteps({
    ...options,
    ...events,
    events: deliveries,
    runs,
    feed: new ReplayFeed(options),
    candidates,
    payloadMemory,
    circuits: new Circuits(reading),
    notes: new OwnEventLog(reading),
    hasOwnSource: (org) => hasOwnSource(registry, org),
  });
  return new ReplayRunner({ ...options, published: new RedisRegistryPublisher(redis, prefix), runs, steps });
}
