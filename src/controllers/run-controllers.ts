import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { Keyring } from '../core/sealing.ts';
import type { SpentMailBudgets } from '../data/alerts/mail-budget.ts';
import type { MailRecipients } from '../data/alerts/mail-recipients.ts';
import type { CronRuns } from '../data/cron/cron-runs.ts';
import type { ArchiveFailures } from '../data/history/archive-failures.ts';
import type { CircuitFeed } from '../data/queue/circuit-feed.ts';
import type { Circuits } from '../data/queue/circuits.ts';
import type { RegistryPublisher } from '../data/registry/registry.ts';
import type { RedisReplayRuns } from '../data/replays/redis-replay-runs.ts';
import type { MessagePurger } from '../data/shard/messages.ts';
import type { KnownWebhooks } from '../data/webhooks/known-webhooks.ts';
import type { RedisWebhookStore } from '../data/webhooks/redis-webhook-store.ts';
import { byKind, configurationKinds, kinds } from '../resources/kinds.ts';
import type { ControllerMetrics } from '../runtime/controller-metrics.ts';
import { formatKey } from '../runtime/object-key.ts';
import { runController } from '../runtime/run-controller.ts';
import { WorkQueue } from '../runtime/work-queue.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { ClusterKind, ClusterQuery } from '../store/cluster-objects.ts';
import type { KubernetesObjects } from '../store/kubernetes/kubernetes-objects.ts';
import type { CompleteStore } from '../store/store.ts';
import { type ControllerCaches, indexes } from './controller-caches.ts';
import type { WorkerEgressSource } from './delivery-pool/pool-egress.ts';
import type { EventRecorder } from './event-recorder.ts';
import { FencedPublisher } from './fenced-publisher.ts';
import { FirstPass } from './first-pass.ts';
import { followObjects } from './follow-objects.ts';
import { runArchiveHealth } from './health/archive-health.ts';
import { runMailHealth } from './health/mail-health.ts';
import { runHealth } from './health/run-health.ts';
import { organizationOf } from './held-ids.ts';
import { runScheduleStatus } from './http-cron-job/schedule-status.ts';
import { organizationLabel } from './organization/organization-namespace.ts';
import type { Pools } from './organization/organization-pool.ts';
import { OrganizationQuotas, quotaKind } from './organization/organization-quota.ts';
import { isInstallationEnding } from './organization/organization-reconciler.ts';
import { OrganizationRecords } from './organization/organization-records.ts';
import { bindingNames, type Installation, OrganizationRights, roleBindingKind } from './organization/organization-rights.ts';
import { reconcilersOf, webhookStoreSinks } from './reconcilers.ts';
import { runReplayStatus } from './replay/replay-status.ts';
import { type Queues, requeueOnChange } from './requeue.ts';
import type { LeaderEventSink } from './rotation-sink.ts';
import { SecretReader } from './secret-reader.ts';
import { StatusWriter } from './status-writer.ts';
import { watchStoreId } from './store-id.ts';
import { runSweep } from './sweep.ts';

export interface RunControllersOptions {
  /** Running; they may have been started long before. */
  caches: ControllerCaches;
  store: CompleteStore;
  /** Objects that are not Posthorn's own; null where resources do not live in Kubernetes. */
  objects: KubernetesObjects | null;
  /** Whose api and controller get rights where organizations live; null: resources do not live in Kubernetes, where alone rights are needed. */
  installation: Installation | null;
  /** As in `OrganizationQuotasOptions`, from when the caches are filled. */
  countedAfterMs: number;
  pools: Pools | null;
  registry: RegistryPublisher;
  /** Applications, endpoints and subscriptions as the leader of this epoch writes them. */
  webhooks(epoch: number): RedisWebhookStore;
  knownWebhooks: KnownWebhooks;
  circuits: Circuits;
  /** Feed of this process alone; closed when the controllers end. */
  feed: CircuitFeed;
  purger: MessagePurger;
  archiveFailures: Pick<ArchiveFailures, 'all'>;
  mailBudgets: Pick<SpentMailBudgets, 'onDayOf'>;
  /** Null: addresses need not be confirmed. */
  mailRecipients: Pick<MailRecipients, 'states'> | null;
  cronRuns: Pick<CronRuns, 'lastSlots'>;
  replayRuns: Pick<RedisReplayRuns, 'find'>;
  leaderEvents: LeaderEventSink;
  keyring: Keyring;
  /** Warehouses may have the identity of the delivery pods. */
  allowsPlatformIdentity: boolean;
  /** Domains of addresses that may get e-mails; empty: any. */
  mailDomains: readonly string[];
  /** Secrets of users need their label to be used. */
  requiresSecretConsent: boolean;
  /** Webhook endpoints may be reached by http. */
  allowsInsecureUrls: boolean;
  /** The installation has a public address, which links of thin deliveries need. */
  hasPublicUrl: boolean;
  /** Rules for addresses that no worker reaches. */
  egressSource: WorkerEgressSource;
  /** Where the code and the schemas of users are checked. */
  sandbox: Sandbox;
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  metrics: ControllerMetrics;
  /** Over how many shards new destinations are spread. */
  shards: number;
  /** Renews leadership once more; rejects when it is lost. */
  renewLeadership(): Promise<void>;
}

/** The kinds whose objects make workers send requests to an address that they name. */
const sendingKinds = ['Destination', 'HttpCronJob', 'NotificationChannel', 'WebhookEndpoint'] as const;

const deadlineMs = 30_000;
/** Delay until a changed ResourceQuota is processed: its status changes with every object that is made. */
const quotaChangeMs = 2000;
/** Delay until an organization is reconciled whose rights were changed, or have no effect. */
const rightsChangeMs = 100;

/**
 * Runs all controllers of a leader until the signal aborts, then waits for what is under way. Rejects with CONFLICT once a newer
 * epoch has refused a publish (another leads), or when leadership is gone before the first publish.
 *
 * A new leader mints its epoch, then renews its lease. From then on the previous leader cannot publish.
 */
export async function runControllers(options: RunControllersOptions, signal: AbortSignal): Promise<void> {
  const { caches, store, registry, keyring, clock, logger, recorder, metrics } = options;
  const epoch = await registry.mintEpoch();
  const known = await registry.marker();
  await options.renewLeadership();
  await registry.eachOwner((id, org) => caches.owners.note(id, org));
  const publisher = new FencedPublisher(registry, epoch, caches.owners);
  const ended = new AbortController();
  const running = AbortSignal.any([signal, publisher.fenced, ended.signal]);
  await untilAborted(caches.synced, running);
  if (signal.aborted) return;
  // Before anything is retracted.
  await new OrganizationRecords({ ...options, publisher }).retainGone(clock.now());

  const status = new StatusWriter({ store, clock, recorder });
  const refused = (namespace: string): void => {
    const owner = organizationOf(caches.Organization, namespace);
    if (owner !== undefined) rights?.doubt(owner);
    requeueOrganization({ namespace }, rightsChangeMs);
  };
  const secrets = new SecretReader({ store, keyring, requiresConsent: options.requiresSecretConsent, refused });
  const { objects, installation } = options;
  const quotas = objects === null ? null : new OrganizationQuotas({ ...options, objects });
  const rights = objects === null || installation === null ? null : new OrganizationRights({ ...options, objects, installation });
  const webhooks = options.webhooks(epoch);
  const queues: Queues = byKind(configurationKinds, () => new WorkQueue({ clock }));
  const sinks = webhookStoreSinks({ ...options, queues, publisher, webhookStore: webhooks });
  const reconcilers = reconcilersOf({
    ...options,
    egressOf: (organization) => options.egressSource.of(organization),
    queues,
    publisher,
    webhooks: sinks,
    status,
    secrets,
    quotas,
    rights,
  });
  const addEverything = (): void => {
    for (const kind of configurationKinds) for (const { metadata } of caches[kind].list()) queues[kind].add(formatKey(metadata), 'initial');
  };
  const unsubscribe = requeueOnChange({ caches, queues, reconcilers, status, pools: options.pools });
  const endOfEgressChanges = options.egressSource.onChange(({ spec }) => {
    for (const kind of sendingKinds)
      for (const { metadata } of caches[kind].byIndex(indexes.namespace, spec.namespace)) queues[kind].add(formatKey(metadata));
  });
  const unfollowNamespace = caches.Namespace.onChange(({ name }) => {
    if (name !== installation?.namespace || !isInstallationEnding(caches, installation)) return;
    for (const { metadata } of caches.Organization.list()) queues.Organization.add(formatKey(metadata));
  });
  const firstPass = new FirstPass({ queues: Object.values(queues), publisher, clock, logger });
  const publishEverything = (): void => {
    addEverything();
    firstPass.begin();
  };
  publishEverything();
  logger.info({ epoch, objects: configurationKinds.reduce((sum, kind) => sum + caches[kind].size, 0) }, 'controllers are running');
  const requeueOrganization = ({ namespace = '' }: { namespace?: string }, afterMs: number): void => {
    const owner = organizationOf(caches.Organization, namespace);
    if (owner !== undefined) queues.Organization.addAfter(formatKey(owner.metadata), afterMs);
  };
  const follow = (kind: ClusterKind, query: ClusterQuery, afterMs: number): Promise<void>[] =>
    objects === null
      ? []
      : [followObjects({ objects, kind, query, onChange: (metadata) => requeueOrganization(metadata, afterMs), clock, logger }, running)];
  const parts = [
    ...follow(quotaKind, { labelSelector: organizationLabel }, quotaChangeMs),
    ...(rights === null || installation === null ? [] : bindingNames(installation)).flatMap((name) =>
      follow(roleBindingKind, { name }, rightsChangeMs),
    ),
    ...configurationKinds.map((kind) =>
      runController(
        {
          kind,
          queue: queues[kind],
          workers: kinds[kind].workers,
          deadlineMs,
          reconcile: (key, stop) => reconcilers[kind].reconcile(key, stop),
          clock,
          logger,
          metrics,
        },
        running,
      ),
    ),
    runSweep({ ...options, publisher, webhooks }, running),
    watchStoreId({ publisher, known, clock, logger, onDataLoss: publishEverything }, running),
    firstPass.run(running),
    runHealth(options, running),
    runArchiveHealth(options, running),
    runMailHealth(options, running),
    runScheduleStatus(options, running),
    runReplayStatus(options, running),
  ];
  try {
    await Promise.all(parts);
  } finally {
    ended.abort();
    await Promise.allSettled(parts);
    unsubscribe();
    endOfEgressChanges();
    unfollowNamespace();
  }
  if (publisher.fenced.aborted) throw publisher.fenced.reason;
}

async function untilAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise: aborted, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) return;
  signal.addEventListener('abort', () => resolve(), { once: true });
  await Promise.race([promise, aborted]);
}
