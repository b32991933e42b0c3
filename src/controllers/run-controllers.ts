import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { RecordKind } from '../core/records.ts';
import type { Keyring } from '../core/sealing.ts';
import type { SpentMailBudgets } from '../data/alerts/mail-budget.ts';
import type { MailRecipients } from '../data/alerts/mail-recipients.ts';
import type { CronRuns } from '../data/cron/cron-runs.ts';
import type { ArchiveTroubles } from '../data/history/archive-troubles.ts';
import type { CircuitFeed } from '../data/queue/circuit-feed.ts';
import type { Circuits } from '../data/queue/circuits.ts';
import type { RegistryPublisher } from '../data/registry/registry.ts';
import type { MessagePurger } from '../data/shard/messages.ts';
import type { WebhookStore } from '../data/webhooks/webhooks.ts';
import { type ConfigurationKind, configurationKinds } from '../resources/kinds.ts';
import { runController } from '../runtime/controller.ts';
import type { ControllerMetrics } from '../runtime/controller-metrics.ts';
import { formatKey } from '../runtime/object-key.ts';
import { WorkQueue } from '../runtime/work-queue.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { ResourceCache } from '../store/cache.ts';
import type { ClusterKind, ClusterObjects, ClusterQuery } from '../store/cluster-objects.ts';
import type { CompleteStore } from '../store/store.ts';
import { apiKeyRules } from './api-key/api-key-rules.ts';
import { CodeChecks } from './code-checks.ts';
import { type ControllerCaches, indexes, nameIn } from './controller-caches.ts';
import { CredentialsSink } from './credentials-sink.ts';
import { destinationRules } from './destination/destination-rules.ts';
import type { EventRecorder } from './event-recorder.ts';
import { FencedPublisher } from './fenced-publisher.ts';
import { filterRules } from './filter/filter-rules.ts';
import { FirstPass } from './first-pass.ts';
import { followObjects } from './follow-objects.ts';
import { runArchiveHealth } from './health/archive-health.ts';
import { runMailHealth } from './health/mail-health.ts';
import { runHealth } from './health/run-health.ts';
import { cronJobRules } from './http-cron-job/cron-job-rules.ts';
import { runScheduleStatus } from './http-cron-job/schedule-status.ts';
import { notificationChannelRules } from './notification-channel/notification-channel-rules.ts';
import { organizationLabel } from './organization/organization-namespace.ts';
import type { Pools } from './organization/organization-pool.ts';
import { OrganizationQuotas, quotaKind } from './organization/organization-quota.ts';
import { OrganizationReconciler } from './organization/organization-reconciler.ts';
import { bindingNames, type Installation, OrganizationRights, roleBindingKind } from './organization/organization-rights.ts';
import { payloadSchemaRules } from './payload-schema/payload-schema-rules.ts';
import { registrySink } from './record-sink.ts';
import { organizationOf } from './references.ts';
import { type Queues, requeueOnChange } from './requeue.ts';
import { ResourceReconciler, type ResourceRules } from './resource-reconciler.ts';
import { RouteCode } from './route/route-code.ts';
import { routeRules } from './route/route-rules.ts';
import { SecretReader } from './secret-reader.ts';
import { ShardDirectory } from './shard-directory.ts';
import { sourceRules } from './source/source-rules.ts';
import { StatusWriter } from './status-writer.ts';
import { watchMarker } from './store-marker.ts';
import { runSweep } from './sweep.ts';
import { transformRules } from './transform/transform-rules.ts';
import { webhookApplicationRules } from './webhook-application/webhook-application-rules.ts';
import { webhookApplicationSink } from './webhook-application/webhook-application-sink.ts';
import { webhookEndpointRules } from './webhook-endpoint/webhook-endpoint-rules.ts';
import { webhookEndpointSink } from './webhook-endpoint/webhook-endpoint-sink.ts';
import { webhookEventTypeRules } from './webhook-event-type/webhook-event-type-rules.ts';
import { webhookEventTypeSink } from './webhook-event-type/webhook-event-type-sink.ts';
import { webhookSubscriptionRules } from './webhook-subscription/webhook-subscription-rules.ts';
import { webhookSubscriptionSink } from './webhook-subscription/webhook-subscription-sink.ts';

export interface RunControllersOptions {
  /** Running; they may have been started long before. */
  caches: ControllerCaches;
  store: CompleteStore;
  /** Objects that are not Posthorn's own; null where resources do not live in Kubernetes. */
  objects: ClusterObjects | null;
  /** Whose api and controller get rights where organizations live; null: resources do not live in Kubernetes, where alone rights are needed. */
  installation: Installation | null;
  /** As in `OrganizationQuotasOptions`, from when the caches are filled. */
  countedAfterMs: number;
  pools: Pools | null;
  registry: RegistryPublisher;
  /** Applications, endpoints and subscriptions as the leader of this epoch writes them. */
  webhooks(epoch: number): WebhookStore;
  circuits: Circuits;
  /** Of this process alone; closed when the controllers end. */
  feed: CircuitFeed;
  purger: MessagePurger;
  archiveTroubles: Pick<ArchiveTroubles, 'all'>;
  mailBudgets: Pick<SpentMailBudgets, 'onDayOf'>;
  /** Null: addresses need not be confirmed. */
  mailRecipients: Pick<MailRecipients, 'states'> | null;
  cronRuns: Pick<CronRuns, 'lastSlots'>;
  keyring: Keyring;
  /** Warehouses may have the identity of the delivery pods. */
  allowsPlatformIdentity: boolean;
  /** Of addresses that may get e-mails; empty: any. */
  mailDomains: readonly string[];
  /** Secrets of users need their label to be used. */
  requiresSecretConsent: boolean;
  /** Webhook endpoints may be reached by http. */
  allowsInsecureUrls: boolean;
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

/** How many objects of a kind are worked on at a time: enough to keep the API server busy, few enough to leave it to others. */
const workers: Record<ConfigurationKind, number> = {
  Organization: 2,
  Source: 4,
  Destination: 12,
  Route: 12,
  Filter: 4,
  Transform: 4,
  PayloadSchema: 4,
  NotificationChannel: 4,
  HttpCronJob: 4,
  ApiKey: 4,
  WebhookEventType: 4,
  WebhookApplication: 4,
  WebhookEndpoint: 8,
  WebhookSubscription: 8,
};
const deadlineMs = 30_000;
/** How soon a changed ResourceQuota is looked at: its status changes with every object that is made. */
const quotaChangeMs = 2000;
/** How soon an organization is looked at whose rights somebody has changed, or do not count. */
const rightsChangeMs = 100;

/**
 * Runs all controllers of a leader until the signal aborts, then waits for what is under way. Rejects with CONFLICT once a newer
 * epoch has refused a publish (another leads), or when leadership is gone before the first publish.
 *
 * A new leader mints its epoch, then renews its lease. From then on the previous leader cannot publish.
 */
export async function runControllers(options: RunControllersOptions, signal: AbortSignal): Promise<void> {
  const { caches, store, registry, keyring, sandbox, clock, logger, recorder, metrics, shards } = options;
  const epoch = await registry.mintEpoch();
  const known = await registry.marker();
  await options.renewLeadership();
  await registry.eachOwner((id, org) => caches.owners.note(id, org));
  const publisher = new FencedPublisher(registry, epoch, caches.owners);
  const ended = new AbortController();
  const running = AbortSignal.any([signal, publisher.fenced, ended.signal]);
  await untilAborted(caches.synced, running);
  if (signal.aborted) return;

  const status = new StatusWriter({ store, clock, recorder });
  const refused = (namespace: string): void => {
    const owner = organizationOf(caches.Organization, namespace);
    if (owner !== undefined) rights?.doubt(owner);
    requeueOrganization({ namespace }, rightsChangeMs);
  };
  const secrets = new SecretReader({ store, keyring, requiresConsent: options.requiresSecretConsent, refused });
  const directory = new ShardDirectory(publisher, shards);
  const checks = new CodeChecks(sandbox);
  const common = { caches, status, secrets, clock };
  const credentials = new CredentialsSink(publisher, keyring);
  const published = <K extends ConfigurationKind, R extends RecordKind>(
    rules: ResourceRules<K, R>,
    cache: ResourceCache<K>,
    ofSecrets: CredentialsSink | null = null,
  ) =>
    new ResourceReconciler(rules, rules.recordKind === null ? null : registrySink(publisher, rules.recordKind), cache, common, ofSecrets);
  const webhooks = options.webhooks(epoch);
  const code = new RouteCode({ caches, publisher, checks });
  const requeueReferrers =
    (kind: ConfigurationKind, index: string) =>
    (record: { managedBy: string }): void => {
      for (const { metadata } of caches[kind].byIndex(index, record.managedBy)) queues[kind].add(formatKey(metadata));
    };
  const requeueSubscriptionsOf = (endpointId: string): void => {
    for (const { metadata } of caches.WebhookEndpoint.byIndex(indexes.id, endpointId))
      for (const subscription of caches.WebhookSubscription.byIndex(indexes.endpoint, nameIn(metadata.namespace, metadata.name)))
        queues.WebhookSubscription.add(formatKey(subscription.metadata));
  };
  const { objects, installation } = options;
  const quotas = objects === null ? null : new OrganizationQuotas({ ...options, objects });
  const rights = objects === null || installation === null ? null : new OrganizationRights({ ...options, objects, installation });
  const webhookSinks = { webhooks, publisher, organizations: caches.Organization };
  const reconcilers = {
    Organization: new OrganizationReconciler({ ...options, ...common, publisher, quotas, rights }),
    Source: published(sourceRules(keyring), caches.Source, credentials),
    Destination: published(destinationRules({ ...options, shards: directory }), caches.Destination, credentials),
    Route: published(routeRules(caches, directory, code, options.mailDomains), caches.Route),
    Filter: published(filterRules(), caches.Filter),
    Transform: published(transformRules(checks), caches.Transform),
    PayloadSchema: published(payloadSchemaRules(checks), caches.PayloadSchema),
    NotificationChannel: published(notificationChannelRules(keyring, options.mailDomains), caches.NotificationChannel, credentials),
    HttpCronJob: published(cronJobRules(keyring), caches.HttpCronJob, credentials),
    ApiKey: published(apiKeyRules(caches), caches.ApiKey),
    WebhookEventType: new ResourceReconciler(
      webhookEventTypeRules(checks, clock),
      webhookEventTypeSink(webhookSinks),
      caches.WebhookEventType,
      common,
    ),
    WebhookApplication: new ResourceReconciler(
      webhookApplicationRules(),
      webhookApplicationSink({ ...webhookSinks, shards, created: requeueReferrers('WebhookEndpoint', indexes.application) }),
      caches.WebhookApplication,
      common,
    ),
    WebhookEndpoint: new ResourceReconciler(
      webhookEndpointRules({ ...options, ended: requeueSubscriptionsOf }),
      webhookEndpointSink({ ...webhookSinks, created: requeueReferrers('WebhookSubscription', indexes.endpoint) }),
      caches.WebhookEndpoint,
      common,
    ),
    WebhookSubscription: new ResourceReconciler(
      webhookSubscriptionRules(caches, code),
      webhookSubscriptionSink(webhookSinks),
      caches.WebhookSubscription,
      common,
    ),
  };
  const queues: Queues = {
    Organization: new WorkQueue({ clock }),
    Source: new WorkQueue({ clock }),
    Destination: new WorkQueue({ clock }),
    Route: new WorkQueue({ clock }),
    Filter: new WorkQueue({ clock }),
    Transform: new WorkQueue({ clock }),
    PayloadSchema: new WorkQueue({ clock }),
    NotificationChannel: new WorkQueue({ clock }),
    HttpCronJob: new WorkQueue({ clock }),
    ApiKey: new WorkQueue({ clock }),
    WebhookEventType: new WorkQueue({ clock }),
    WebhookApplication: new WorkQueue({ clock }),
    WebhookEndpoint: new WorkQueue({ clock }),
    WebhookSubscription: new WorkQueue({ clock }),
  };
  const addEverything = (): void => {
    for (const kind of configurationKinds) for (const { metadata } of caches[kind].list()) queues[kind].add(formatKey(metadata), 'initial');
  };
  const unsubscribe = requeueOnChange({ caches, queues, reconcilers, status, pools: options.pools });
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
          workers: workers[kind],
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
    watchMarker({ publisher, known, clock, logger, onDataLoss: publishEverything }, running),
    firstPass.run(running),
    runHealth(options, running),
    runArchiveHealth(options, running),
    runMailHealth(options, running),
    runScheduleStatus(options, running),
  ];
  try {
    await Promise.all(parts);
  } finally {
    ended.abort();
    await Promise.allSettled(parts);
    unsubscribe();
  }
  if (publisher.fenced.aborted) throw publisher.fenced.reason;
}

async function untilAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise: aborted, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) return;
  signal.addEventListener('abort', () => resolve(), { once: true });
  await Promise.race([promise, aborted]);
}
