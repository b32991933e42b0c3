import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { Keyring } from '../../core/sealing.ts';
import type { ChannelAlerts } from '../../data/alerts/channel-alerts.ts';
import type { StatisticsReader } from '../../data/analytics/statistics.ts';
import type { SeriesReader } from '../../data/analytics/statistics-series.ts';
import type { CronExecutions } from '../../data/cron/cron-executions.ts';
import type { CronRuns } from '../../data/cron/cron-runs.ts';
import type { ApiKeyUsage } from '../../data/intake/api-key-usage.ts';
import type { IdempotentAnswers } from '../../data/intake/idempotent-answers.ts';
import type { Intake } from '../../data/intake/intake.ts';
import type { RateLimiter } from '../../data/intake/rate-limit.ts';
import type { SignatureFailures } from '../../data/intake/signature-failures.ts';
import type { OrganizationLock } from '../../data/locks/organization-lock.ts';
import type { WriteAheadLog } from '../../data/locks/write-ahead-log.ts';
import type { Circuits } from '../../data/queue/circuits.ts';
import type { RegistryReader } from '../../data/registry/registry.ts';
import type { ReplayRunReader } from '../../data/replays/replay-run.ts';
import type { SessionStore } from '../../data/sessions/session-store.ts';
import type { MessageCanceller, MessageReader, MessageReplayer } from '../../data/shard/messages.ts';
import type { TaskCaller } from '../../data/tasks/task-caller.ts';
import type { WebhookMessages } from '../../data/webhooks/webhook-messages.ts';
import type { WebhookSending } from '../../data/webhooks/webhook-sending.ts';
import type { WebhookStatistics } from '../../data/webhooks/webhook-statistics.ts';
import type { WebhookStore } from '../../data/webhooks/webhooks.ts';
import type { StreamHub } from '../../feed/stream-hub.ts';
import type { ServedKind } from '../../resources/kinds.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { CacheByKind } from '../../store/reflected-caches.ts';
import type { ResourceStore } from '../../store/store.ts';
import type { InstallationReader } from './installation-reader.ts';
import type { KubernetesCallers } from './kubernetes-callers.ts';

export type { ServedKind };
export type ResourceCaches = CacheByKind<ServedKind>;

/** What operations work with. */
export interface FacadeServices {
  store: ResourceStore;
  caches: ResourceCaches;
  registry: RegistryReader;
  installation: InstallationReader;
  /** Null outside of a cluster. */
  kubernetesCallers: KubernetesCallers | null;
  messages: MessageReader;
  replayer: MessageReplayer;
  canceller: MessageCanceller;
  /** What is known of the runs of replays. */
  replayRuns: ReplayRunReader;
  intake: Intake;
  statistics: StatisticsReader & SeriesReader;
  circuits: Circuits;
  /** Applications, endpoints and subscriptions. */
  webhooks: WebhookStore;
  /** Webhook endpoints may have http URLs. */
  allowsInsecureEndpoints: boolean;
  /** The installation has a public address, which links of thin deliveries need. */
  hasPublicUrl: boolean;
  /** How many shards there are for what is new. */
  shards: () => number;
  /** What send-event needs. */
  sending: Omit<WebhookSending, 'findFurther'>;
  webhookMessages: WebhookMessages;
  webhookStatistics: WebhookStatistics;
  /** Where what users write is checked and tried. */
  sandbox: Sandbox;
  cronRuns: CronRuns;
  cronExecutions: CronExecutions;
  /** What a delivery worker does for the API: everything that goes out to receivers. */
  tasks: TaskCaller;
  /** The live streams of this process. */
  streams: StreamHub;
  keyring: Keyring;
  /** Warehouses may have the identity of the delivery pods. */
  allowsPlatformIdentity: boolean;
  /** Of addresses that may get e-mails; empty: any. */
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
