import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { Keyring } from '../../core/sealing.ts';
import type { ChannelAlerts } from '../../data/alerts/channel-alerts.ts';
import type { RedisStatisticsReader } from '../../data/analytics/redis-statistics-reader.ts';
import type { CronExecutions } from '../../data/cron/cron-executions.ts';
import type { CronRuns } from '../../data/cron/cron-runs.ts';
import type { RedisMessageCanceller } from '../../data/history/message-canceller.ts';
import type { RedisMessageReader } from '../../data/history/message-reader.ts';
import type { RedisMessageReplayer } from '../../data/history/message-replayer.ts';
import type { ApiKeyUsage } from '../../data/intake/api-key-usage.ts';
import type { IdempotentAnswers } from '../../data/intake/idempotent-answers.ts';
import type { Intake } from '../../data/intake/intake.ts';
import type { RateLimiter } from '../../data/intake/rate-limit.ts';
import type { SignatureFailures } from '../../data/intake/signature-failures.ts';
import type { OrganizationLock } from '../../data/locks/organization-lock.ts';
import type { WriteAheadLog } from '../../data/locks/write-ahead-log.ts';
import type { Circuits } from '../../data/queue/circuits.ts';
import type { RegistryReader } from '../../data/registry/registry.ts';
import type { RedisReplayRuns } from '../../data/replays/redis-replay-runs.ts';
import type { SessionStore } from '../../data/sessions/session-store.ts';
import type { RedisTaskCaller } from '../../data/tasks/task-caller.ts';
import type { RedisWebhookStore } from '../../data/webhooks/redis-webhook-store.ts';
import type { WebhookMessages } from '../../data/webhooks/webhook-messages.ts';
import type { WebhookSending } from '../../data/webhooks/webhook-sending.ts';
import type { WebhookStatistics } from '../../data/webhooks/webhook-statistics.ts';
import type { StreamHub } from '../../feed/stream-hub.ts';
import type { ServedKind } from '../../resources/kinds.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { KubernetesEvents } from '../../store/kubernetes/kubernetes-events.ts';
import type { CacheByKind } from '../../store/reflected-caches.ts';
import type { ResourceStore } from '../../store/store.ts';
import type { InstallationReader } from './installation-reader.ts';
import type { KubernetesCallers } from './kubernetes-callers.ts';

export type { ServedKind };
export type ResourceCaches = CacheByKind<ServedKind>;

/** Dependencies of operations. */
export interface FacadeServices {
  store: ResourceStore;
  caches: ResourceCaches;
  registry: RegistryReader;
  installation: InstallationReader;
  /** Null outside of a cluster. */
  kubernetesCallers: KubernetesCallers | null;
  /** Records of the cluster about objects; null outside of one. */
  objectEvents: KubernetesEvents | null;
  messages: RedisMessageReader;
  replayer: RedisMessageReplayer;
  canceller: RedisMessageCanceller;
  /** State of the runs of replays. */
  replayRuns: RedisReplayRuns;
  intake: Intake;
  statistics: RedisStatisticsReader;
  circuits: Circuits;
  /** Applications, endpoints and subscriptions. */
  webhooks: RedisWebhookStore;
  /** Webhook endpoints may have http URLs. */
  allowsInsecureEndpoints: boolean;
  /** The installation has a public address, which links of thin deliveries need. */
  hasPublicUrl: boolean;
  /** How many shards there are for what is new. */
  shards: () => number;
  /** Dependencies of send-event. */
  sending: Omit<WebhookSending, 'findFurther'>;
  webhookMessages: WebhookMessages;
  webhookStatistics: WebhookStatistics;
  /** Where what users write is checked and tried. */
  sandbox: Sandbox;
  cronRuns: CronRuns;
  cronExecutions: CronExecutions;
  /** Tasks of delivery workers for the API: everything that goes out to receivers. */
  tasks: RedisTaskCaller;
  /** The live streams of this process. */
  streams: StreamHub;
  keyring: Keyring;
  /** Warehouses may have the identity of the delivery pods. */
  allowsPlatformIdentity: boolean;
  /** Domains of addresses that may get e-mails; empty: any. */
  mailDomains: readonly string[];
  apiKeyUsage: ApiKeyUsage;
  signatureFailures: SignatureFailures;
  sessions: SessionStore;
  channelAlerts: ChannelAlerts;
  organizationLock: OrganizationLock;
  writeAheadLog: WriteAheadLog;
  idempotentAnswers: IdempotentAnswers;
  rateLimiter: RateLimiter;
  clock: Clock;
  logger: Logger;
  /** How long an answer to a write waits for the change to be in force, in milliseconds. */
  inForceTimeoutMs: number;
}
