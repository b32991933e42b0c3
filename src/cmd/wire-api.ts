import type { Registry } from 'prom-client';
import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import { ChannelAlerts } from '../data/alerts/channel-alerts.ts';
import { MailRecipients } from '../data/alerts/mail-recipients.ts';
import { RedisStatisticsReader } from '../data/analytics/redis-statistics-reader.ts';
import { CronExecutions } from '../data/cron/cron-executions.ts';
import { CronRuns } from '../data/cron/cron-runs.ts';
import { FeedReader } from '../data/feed/feed-reader.ts';
import { LinkedPayloads } from '../data/history/linked-payloads.ts';
import { RedisMessageCanceller } from '../data/history/message-canceller.ts';
import { RedisMessageReader } from '../data/history/message-reader.ts';
import { RedisMessageReplayer } from '../data/history/message-replayer.ts';
import { ApiKeyUsage } from '../data/intake/api-key-usage.ts';
import { IdempotentAnswers } from '../data/intake/idempotent-answers.ts';
import { RedisIntake } from '../data/intake/intake.ts';
import { QuotaSteps } from '../data/intake/quota-steps.ts';
import { RateLimiter } from '../data/intake/rate-limit.ts';
import { SignatureFailures } from '../data/intake/signature-failures.ts';
import { OrganizationLock } from '../data/locks/organization-lock.ts';
import { WriteAheadLog } from '../data/locks/write-ahead-log.ts';
import { Circuits } from '../data/queue/circuits.ts';
import type { RegistryReader } from '../data/registry/registry.ts';
import { RedisReplayRuns } from '../data/replays/redis-replay-runs.ts';
import { SessionStore } from '../data/sessions/session-store.ts';
import { RedisTaskCaller } from '../data/tasks/task-caller.ts';
import { RedisWebhookStore } from '../data/webhooks/redis-webhook-store.ts';
import { WebhookMessages } from '../data/webhooks/webhook-messages.ts';
import { webhookSending } from '../data/webhooks/webhook-sending.ts';
import { WebhookStatistics } from '../data/webhooks/webhook-statistics.ts';
import type { FacadeOptions } from '../facade/app.ts';
import { referrerIndex } from '../facade/records/lookup.ts';
import { streamMetrics } from '../feed/metrics.ts';
import { StreamHub } from '../feed/stream-hub.ts';
import type { RedisClient } from '../redis/connection.ts';
import type { ReplicatedWrites } from '../redis/replicated-writes.ts';
import { type ServedKind, servedKinds } from '../resources/kinds.ts';
import { ReflectedCaches, type ReflectedCachesOptions } from '../store/reflected-caches.ts';
import { type InstallationReaderOptions, installationReader } from './read-installation.ts';

export interface ApiConnections {
  redis: RedisClient;
  /** Stores events; whether one is stored is read over the same connection. */
  storing: RedisClient;
  /** For the chunks of large payloads; absent: `storing` takes them, too. */
  payloads?: RedisClient;
  /** Blocks for up to `feedBlockMs`. */
  feed: RedisClient;
  /** Blocks for up to `taskBlockSeconds`. */
  tasks: RedisClient;
}

export interface ApiWiring {
  connections: ApiConnections;
  prefix: string;
  clock: Clock;
  logger: Logger;
  metrics: Registry;
  registry: RegistryReader;
  /** Absent: as of `RedisWebhookStore`. */
  writes?: ReplicatedWrites;
  shards: () => number;
  /** Memory of Redis that counts where it has no maxmemory of its own. */
  memoryLimitBytes: number | undefined;
  installation: Pick<InstallationReaderOptions, 'name' | 'mode' | 'namespace'>;
  /** Attempts at a message to a webhook endpoint, including the first one. */
  maxAttempts: number;
  requiresMailConfirmation: boolean;
}

/** Makes the parts of the facade that work on Redis, with what they share. */
export function wireApi({
  connections: { redis, storing, payloads, feed, tasks },
  prefix,
  clock,
  logger,
  metrics,
  registry,
  writes,
  shards,
  memoryLimitBytes,
  installation,
  maxAttempts,
  requiresMailConfirmation,
}: ApiWiring) {
  const shared = { redis, prefix, clock, logger };
  const quotaSteps = new QuotaSteps({ redis, prefix, logger, registry, shards });
  const webhooks = new RedisWebhookStore({ ...shared, writes, shards });
  return {
    registry,
    clock,
    logger,
    metrics,
    shards,
    installation: installationReader({ redis, prefix, shards, memoryLimitBytes, ...installation }),
    messages: new RedisMessageReader({ redis, prefix, shards }),
    replayer: new RedisMessageReplayer({ redis, prefix, clock, shards, memoryLimitBytes, quotaSteps }),
    canceller: new RedisMessageCanceller({ redis, prefix, shards }),
    replayRuns: new RedisReplayRuns({ redis, prefix }),
    intake: new RedisIntake({ redis: storing, prefix, clock, quotaSteps }),
    statistics: new RedisStatisticsReader({ redis, prefix, clock, shards }),
    circuits: new Circuits({ redis, prefix, shards }),
    webhooks,
    webhookMessages: new WebhookMessages({ redis, prefix, shards }),
    webhookStatistics: new WebhookStatistics({ redis, prefix, clock, shards }),
    sending: webhookSending({ ...shared, storing, payloads, store: webhooks, maxAttempts, shards, memoryLimitBytes }),
    cronRuns: new CronRuns({ redis, prefix }),
    cronExecutions: new CronExecutions({ redis, prefix }),
    tasks: new RedisTaskCaller({ ...shared, blocking: tasks }),
    streams: new StreamHub({
      reader: new FeedReader({ ...shared, blocking: feed, shards }),
      clock,
      logger,
      metrics: streamMetrics(metrics),
    }),
    linkedPayloads: new LinkedPayloads({ redis: payloads ?? redis, prefix, shards }),
    mailRecipients: requiresMailConfirmation ? new MailRecipients({ redis, prefix }) : null,
    apiKeyUsage: new ApiKeyUsage(shared),
    signatureFailures: new SignatureFailures(shared),
    sessions: new SessionStore(shared),
    channelAlerts: new ChannelAlerts(shared),
    organizationLock: new OrganizationLock(shared),
    writeAheadLog: new WriteAheadLog(shared),
    idempotentAnswers: new IdempotentAnswers({ redis, prefix }),
    rateLimiter: new RateLimiter(shared),
  } satisfies Partial<FacadeOptions>;
}

/** The caches of the kinds that the facade serves, and what keeps them. */
export function facadeCaches(options: Omit<ReflectedCachesOptions<ServedKind>, 'cached'>): ReflectedCaches<ServedKind> {
  // The facade compares the owners of fields before it writes.
  return new ReflectedCaches(servedKinds, { ...options, cached: () => ({ keepManagedFields: true, indexes: referrerIndex }) });
}
