import { randomBytes } from 'node:crypto';
import type { Registry } from 'prom-client';
import type { AttemptDetailMode } from '../core/attempt-detail-mode.ts';
import type { Clock } from '../core/clock.ts';
import { defaultPool } from '../core/default-pool.ts';
import type { InstallationEgress, RefusedAddresses } from '../core/egress-policy.ts';
import type { Logger } from '../core/logger.ts';
import { PayloadLinks } from '../core/payload-link.ts';
import { RecentOrganizations } from '../core/recent-organizations.ts';
import type { Keyring } from '../core/sealing.ts';
import type { StoreEndpoints } from '../core/store-hosts.ts';
import { ChannelAlerts } from '../data/alerts/channel-alerts.ts';
import { MailBudget } from '../data/alerts/mail-budget.ts';
import { MailboxLinks, MailRecipients } from '../data/alerts/mail-recipients.ts';
import { CronExecutions } from '../data/cron/cron-executions.ts';
import { CronDoorbell, CronRuns } from '../data/cron/cron-runs.ts';
import { MessageArchive } from '../data/history/message-archive.ts';
import { RedisWorkerDirectory } from '../data/membership/worker-directory.ts';
import { ByteShares } from '../data/queue/byte-shares.ts';
import type { Target } from '../data/queue/delivery-queue.ts';
import { Doorbell } from '../data/queue/doorbell.ts';
import { OutboxCarrier } from '../data/queue/outbox-carrier.ts';
import { RedisDeliveryQueue } from '../data/queue/redis-delivery-queue.ts';
import type { RegistryReader } from '../data/registry/registry.ts';
import { poolSuffix } from '../data/shard/pool-suffix.ts';
import { TaskQueue } from '../data/tasks/task-queue.ts';
import { RedisWebhookStore } from '../data/webhooks/redis-webhook-store.ts';
import { webhookSending } from '../data/webhooks/webhook-sending.ts';
import { blockingGroups, type RedisClient } from '../redis/connection.ts';
import { Sandbox } from '../sandbox/sandbox.ts';
import { Archiver } from './archive/archiver.ts';
import { type AlertReport, channelAlertOf } from './attempts/alert-attempt.ts';
import { EventTransformer } from './attempts/transformed-event.ts';
import { CronRunner } from './cron/cron-runner.ts';
import { RedisBackoffs } from './loops/redis-backoff.ts';
import { deliveryMetrics, mailCounter } from './metrics.ts';
import { type DeliveryPlan, deliveryPlan } from './plans/delivery-plan.ts';
import { type WebhookPlanSources, WebhookPlans } from './plans/webhook-plan.ts';
import { type EventReplays, replayRunnerOf } from './replays/replay-runner-of.ts';
import { AlertMailer } from './targets/channel/alert-mailer.ts';
import { MailConfirmer } from './targets/channel/mail-confirmer.ts';
import type { Mailer } from './targets/channel/mailer.ts';
import { Dispatchers } from './targets/http/dispatchers.ts';
import type { NameLookup } from './targets/http/name-lookups.ts';
import { channelTestHandler, type RecordAlert } from './tasks/channel-test-handler.ts';
import { cronRunHandler } from './tasks/cron-run.ts';
import { destinationTestHandler } from './tasks/destination-test-handler.ts';
import { endpointTestHandler } from './tasks/endpoint-test-handler.ts';
import { TaskRunner } from './tasks/task-runner.ts';
import { OutboxTransfer } from './worker/duties/outbox-transfer.ts';
import { EndpointConfigSync } from './worker/endpoint-config-sync.ts';
import { ShardConsumer } from './worker/shard-consumer.ts';
import { ShardSignals } from './worker/shard-signals.ts';
import { SlotShares } from './worker/slot-shares.ts';
import { TargetConfigSync } from './worker/target-config-sync.ts';
import { Worker } from './worker/worker.ts';
import { WorkerContext } from './worker/worker-context.ts';

export interface DeliveryOptions {
  /** Command connection, connected by the caller and closed by it after `stop`. */
  redis: RedisClient;
  /** Another one for the chunks of large payloads; default: the same. */
  payloads?: RedisClient;
  /** Makes a blocking connection (`doorbellBlockSeconds`) for this worker alone; closed by `stop`. Called for each doorbell, for the tasks and for cron. */
  openBlocking: () => RedisClient;
  /** How many there are; default 1. */
  shards?: number;
  /** The pool of the worker: the worker serves its organizations. */
  pool?: string;
  prefix: string;
  registry: RegistryReader;
  keyring: Keyring;
  clock: Clock;
  logger: Logger;
  metrics: Registry;
  version: string;
  /** Unique in the installation for as long as the process lives; default: random. */
  workerId?: string;
  /** Attempts at the same time; default 64. */
  concurrency?: number;
  /** Default: failures. */
  attemptDetail?: AttemptDetailMode;
  /** Payload limit of the installation. Default: 1 MiB. */
  maxPayloadBytes?: number;
  egress: Partial<InstallationEgress> & { allowedCidrs: readonly string[]; refused?: RefusedAddresses };
  /** PEM of certificate authorities trusted besides the well-known ones. */
  extraCa?: string;
  /** Proxy for destinations that require a static address. */
  proxyUrl?: string;
  /** Absent: there is no e-mail. Closed by the caller. */
  mailer?: Mailer;
  /** E-mails of an organization in a day, one for each address; default 1000. */
  mailsPerDay?: number;
  /** Domains that may get e-mails. Default: any. */
  mailDomains?: readonly string[];
  /** URL of the API, without a slash at its end, for the links of thin deliveries. Absent: nothing is sent to targets that get links. */
  publicUrl?: string;
  /** URL of the page where addresses are confirmed; absent: they need not be. */
  mailConfirmationUrl?: string;
  /** Evaluates and accepts events for replays. */
  eventReplays: EventReplays;
  /** Endpoints of webhook applications, and how they are delivered to. */
  webhooks: WebhookPlanSources;
  /**
   * Replacements of the clouds' object store endpoints, how long the oldest record of a batch waits (default 60 s), the oldest message of
   * an archive (10 minutes), and whether the identity of this process may be used (default: not).
   */
  warehouse?: { endpoints?: StoreEndpoints; batchAgeMs?: number; archiveAgeMs?: number; allowsPlatformIdentity?: boolean };
  /** Default: 7 days, dead letters 30 days. */
  retention?: { finishedMs: number; deadLettersMs: number };
  /** Memory of Redis that counts as all of it where Redis has no maxmemory. */
  memoryLimitBytes?: number;
  /** Called when a shard has work for the alerts of routes. */
  onAlerts?: (shard: number) => void;
  /** Threads of libuv, of which half resolve host names. Default: 4. */
  lookupThreads?: number;
  /** Replaces DNS in tests. */
  lookup?: NameLookup;
  /** Wraps the queue, for fault injection; default: as it is. */
  wrapQueue?: (queue: RedisDeliveryQueue) => RedisDeliveryQueue;
}

export interface Delivery {
  /** Redis took a heartbeat within the last 15 s. */
  isHealthy(): boolean;
  /** Finishes what is under way within `graceMs` (default 25 s) and requeues the rest. */
  stop(graceMs?: number): Promise<void>;
}

const dayMs = 86_400_000;
const healthyForMs = 15_000;
/** One for the organizations whose transforms are slow. */
const sandboxProcesses = 2;
/** While one has rung and is set up again, others listen. */
const doorbellsOfAllShards = 3;
const defaultGraceMs = 25_000;
const defaultMailsPerDay = 1000;
/** Links to confirm an address, of an organization. */
const confirmationsPerDay = 50;
/** Links to confirm an address, to one mailbox in 7 days. */
const confirmationsPerMailbox = { perOrganization: 3, ofAll: 20 };
const defaultBatchAgeMs = 60_000;
const defaultArchiveAgeMs = 600_000;
/** Limits of a batch of an archive. As JSON it may become some times as large. */
const archiveBatch = { records: 1000, bytes: 4 * 1024 * 1024 };

/** Runs a delivery worker until `stop`. Redis need not be up yet. */
export function startDelivery(options: DeliveryOptions): Delivery {
  const { redis, openBlocking, prefix, registry, keyring, clock, logger, egress, version } = options;
  const {
    concurrency: slots = 64,
    maxPayloadBytes,
    retention = { finishedMs: 7 * dayMs, deadLettersMs: 30 * dayMs },
    shards = 1,
    pool = defaultPool,
    attemptDetail = 'failures',
  } = options;
  const wrapQueue = options.wrapQueue ?? ((queue: RedisDeliveryQueue) => queue);
  const { allowedCidrs, allowedHosts = [], onlyHosts, refused } = egress;
  const dispatchers = new Dispatchers({
    connections: slots,
    clock,
    extraCa: options.extraCa,
    proxyUrl: options.proxyUrl,
    ...(refused && { refused }),
    lookup: options.lookup,
    lookupThreads: options.lookupThreads,
  });
  const userAgent = `Posthorn/${version}`;
  const { endpoints = {}, batchAgeMs = defaultBatchAgeMs, allowsPlatformIdentity = false } = options.warehouse ?? {};
  const mails = mailCounter(options.metrics);
  const mailer =
    options.mailer === undefined
      ? null
      : new AlertMailer({
          mailer: options.mailer,
          budget: new MailBudget({ redis, prefix, clock }, options.mailsPerDay ?? defaultMailsPerDay),
          domains: options.mailDomains ?? [],
          mails,
          confirmer:
            options.mailConfirmationUrl === undefined
              ? null
              : new MailConfirmer({
                  recipients: new MailRecipients({ redis, prefix }),
                  links: new MailBudget({ redis, prefix, clock }, confirmationsPerDay, 'confirmations'),
                  mailboxes: new MailboxLinks({ redis, prefix, clock }, confirmationsPerMailbox),
                  keyring,
                  pageUrl: options.mailConfirmationUrl,
                  logger,
                }),
          logger,
        });
  const stores = { endpoints, batchAgeMs, allowsPlatformIdentity };
  const outgoing = {
    registry,
    keyring,
    dispatchers,
    allowed: { allowedCidrs, allowedHosts, onlyHosts },
    ...stores,
    mailer,
    payloadLinks: options.publicUrl === undefined ? null : new PayloadLinks(options.publicUrl, keyring),
    clock,
    userAgent,
    attemptDetail,
  };
  const webhookPlans = new WebhookPlans({ ...outgoing, webhooks: options.webhooks });
  const planOf = (target: Target): Promise<DeliveryPlan> => deliveryPlan({ ...outgoing, webhookPlans }, target);
  const id = options.workerId ?? `w_${randomBytes(9).toString('base64url')}${poolSuffix(pool)}`;
  const backoffs = new RedisBackoffs(logger);
  const store = new RedisWebhookStore({ redis, prefix, clock, logger });
  const plansNow = new WebhookPlans({ ...outgoing, webhooks: { ...options.webhooks, directory: store } });
  const maxAttempts = options.webhooks.retries.delaysMs.length + 1;
  const { findFurther } = webhookSending({ redis, prefix, clock, logger, store, maxAttempts });
  const organizations = new RecentOrganizations(clock);
  const slotShares = new SlotShares(slots);
  const carrier = new OutboxCarrier({ redis, prefix, findFurther, clock, hasContention: () => organizations.hasSeveral });
  const sandbox = new Sandbox({ clock, processes: sandboxProcesses, ...(maxPayloadBytes !== undefined && { maxPayloadBytes }) });
  const queues = Array.from({ length: shards }, (_, shard) =>
    wrapQueue(
      new RedisDeliveryQueue({ redis, payloads: options.payloads, prefix, shard, memoryLimitBytes: options.memoryLimitBytes, pool }),
    ),
  );
  const byteShares = new ByteShares({ redis, prefix, clock, shards: () => shards, memoryLimitBytes: options.memoryLimitBytes });
  const metrics = deliveryMetrics(options.metrics, {
    queues,
    now: () => clock.now(),
    inFlight: () => slotShares.inFlight,
    bytes: () => byteShares.figures(),
  });
  const channelAlerts = new ChannelAlerts({ redis, prefix });
  const recordAlert: RecordAlert = (org, channelId, alert) => {
    const note = channelAlerts.note(org, channelId, alert);
    note.catch((error: unknown) => logger.debug({ err: error, channelId }, 'an alert was not recorded'));
  };
  const onAlert = (report: AlertReport): void => {
    const { job, channelType, outcome } = report;
    const { destinationId: channelId } = job.target;
    metrics.alerts.inc({ channel: channelType, outcome: outcome.type });
    const channelAlert = channelAlertOf(report);
    if (channelAlert !== null) recordAlert(channelAlert.org, channelId, channelAlert.alert);
    if (outcome.type === 'dead') {
      const why = outcome.attempt?.errorMessage ?? outcome.reason;
      logger.warn({ channelId, channelType, messageId: job.messageId, why }, 'an alert could not be sent and is given up');
    }
  };
  const context = new WorkerContext({ id, slots, shares: slotShares, organizations, clock, logger, metrics, backoffs, retention });
  const transformer = new EventTransformer({ sandbox, clock });
  const { directory } = options.webhooks;
  const consumers = queues.map((queue, shard) => {
    const signals = new ShardSignals();
    const keeper = new TargetConfigSync({ queue, registry, clock, logger, planOf, signals });
    const webhookKeeper = new EndpointConfigSync({ shard, queue, keeper, directory, clock, signals });
    const outboxTransfer = new OutboxTransfer({ carrier, shard, logger });
    const reviewAlerts = (): void => options.onAlerts?.(shard);
    return new ShardConsumer({ context, shard, queue, transformer, signals, keeper, webhookKeeper, outboxTransfer, reviewAlerts });
  });
  const worker = new Worker({
    context,
    directory: new RedisWorkerDirectory({ redis, prefix, shards, version }),
    consumers,
    doorbells: blockingGroups(redis, shards).flatMap((group, _, groups) =>
      Array.from(
        { length: groups.length === 1 ? doorbellsOfAllShards : 1 },
        () => new Doorbell({ redis: openBlocking(), prefix, shards: group, pool }),
      ),
    ),
    planOf,
    userAgent,
    attemptDetail,
    onAlert,
  });
  const cron = {
    ...outgoing,
    runs: new CronRuns({ redis, prefix, pool }),
    executions: new CronExecutions({ redis, prefix }),
  };
  const cronRunner = new CronRunner({
    ...cron,
    bell: new CronDoorbell({ redis, blocking: openBlocking(), prefix, pool }),
    worker: id,
    logger,
    backoff: backoffs.watch(),
    metrics,
  });
  const tasks = new TaskRunner({
    queue: new TaskQueue({ redis, blocking: openBlocking(), prefix, pool }),
    handlers: [
      destinationTestHandler(outgoing),
      endpointTestHandler(outgoing, plansNow),
      channelTestHandler(outgoing, recordAlert),
      cronRunHandler(cron),
    ],
    worker: id,
    clock,
    logger,
    backoff: backoffs.watch(),
    metrics,
  });
  const limits = { ...archiveBatch, ageMs: options.warehouse?.archiveAgeMs ?? defaultArchiveAgeMs };
  const archiver = new Archiver({
    ...outgoing,
    archives: queues.map((_, shard) => new MessageArchive({ redis, prefix, shard, pool, limits })),
    worker: id,
    logger,
    metrics,
  });
  const replays = replayRunnerOf({
    ...{ redis, prefix, shards, shares: byteShares, carrier, registry },
    events: options.eventReplays,
    worker: id,
    clock,
    logger,
  });
  worker.start();
  archiver.start();
  tasks.start();
  cronRunner.start();
  replays.start();
  return {
    isHealthy: () => worker.lastBeatAtMs !== null && clock.now() - worker.lastBeatAtMs < healthyForMs,
    stop: async (graceMs = defaultGraceMs) => {
      await Promise.all([worker.stop(graceMs), archiver.stop(), tasks.stop(graceMs), cronRunner.stop(graceMs), replays.stop()]);
      sandbox.close();
      await dispatchers.close();
    },
  };
}
