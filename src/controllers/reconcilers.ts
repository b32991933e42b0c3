import { compileFilterDefinition } from '../compile/filter.ts';
import { compilePayloadSchema } from '../compile/payload-schema.ts';
import { compileTransform } from '../compile/transform.ts';
import { compileWebhookApplication } from '../compile/webhook-application.ts';
import type { Clock } from '../core/clock.ts';
import type { Keyring } from '../core/sealing.ts';
import type { KnownWebhooks } from '../data/webhooks/known-webhooks.ts';
import type { RedisWebhookStore } from '../data/webhooks/redis-webhook-store.ts';
import { type ConfigurationKind, kinds } from '../resources/kinds.ts';
import { kindsWithSecrets } from '../resources/references.ts';
import type { ReconcileResult } from '../runtime/run-controller.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { CacheByKind } from '../store/reflected-caches.ts';
import type { Key } from '../store/store.ts';
import { apiKeyRules } from './api-key/api-key-rules.ts';
import { CodeChecks } from './code-checks.ts';
import { type ControllerCaches, indexes, nameIn } from './controller-caches.ts';
import { CredentialsSink } from './credentials-sink.ts';
import type { DeletedObjectIds } from './deleted-object-ids.ts';
import { destinationRules } from './destination/destination-rules.ts';
import { cronJobRules } from './http-cron-job/cron-job-rules.ts';
import { notificationChannelRules } from './notification-channel/notification-channel-rules.ts';
import { OrganizationReconciler, type OrganizationReconcilerOptions } from './organization/organization-reconciler.ts';
import { type RecordSink, registrySink } from './record-sink.ts';
import { replayRules } from './replay/replay-rules.ts';
import { type Queues, requeueReferrers } from './requeue.ts';
import {
  type PublishedRecord,
  type RecordRules,
  ResourceReconciler,
  type ResourceReconcilerOptions,
  type ResourceRules,
} from './resource-reconciler.ts';
import { rotatingManager } from './rotating-manager.ts';
import { type LeaderEventSink, rotationSink } from './rotation-sink.ts';
import { RouteCode } from './route/route-code.ts';
import { routeRules } from './route/route-rules.ts';
import { ShardDirectory } from './shard-directory.ts';
import { contentOf, refusedContent } from './shared-content.ts';
import { sourceRules } from './source/source-rules.ts';
import type { StatusWriter } from './status-writer.ts';
import { webhookApplicationSink } from './webhook-application/webhook-application-sink.ts';
import { webhookEndpointRules } from './webhook-endpoint/webhook-endpoint-rules.ts';
import { webhookEndpointSink } from './webhook-endpoint/webhook-endpoint-sink.ts';
import { webhookEventTypeRules } from './webhook-event-type/webhook-event-type-rules.ts';
import { webhookEventTypeSink } from './webhook-event-type/webhook-event-type-sink.ts';
import { webhookSubscriptionRules } from './webhook-subscription/webhook-subscription-rules.ts';
import { webhookSubscriptionSink } from './webhook-subscription/webhook-subscription-sink.ts';

export interface Reconciler<K extends ConfigurationKind> {
  /** Records the ids that are gone. */
  readonly gone: DeletedObjectIds<K>;
  reconcile(key: Key, signal: AbortSignal): Promise<ReconcileResult>;
}

export type Reconcilers = { readonly [K in ConfigurationKind]: Reconciler<K> };

export interface ReconcilersOptions extends OrganizationReconcilerOptions, ResourceReconcilerOptions {
  queues: Queues;
  caches: ControllerCaches;
  status: StatusWriter;
  clock: Clock;
  webhooks: WebhookSinks;
  knownWebhooks: KnownWebhooks;
  keyring: Keyring;
  /** Warehouses may have the identity of the delivery pods. */
  allowsPlatformIdentity: boolean;
  /** Domains of addresses that may get e-mails; empty: any. */
  mailDomains: readonly string[];
  /** Webhook endpoints may be reached by http. */
  allowsInsecureUrls: boolean;
  /** The installation has a public address, which links of thin deliveries need. */
  hasPublicUrl: boolean;
  /** Where the code and the schemas of users are checked. */
  sandbox: Sandbox;
  /** Over how many shards new destinations are spread. */
  shards: number;
  /** Null: no event of rotated secrets is published. */
  leaderEvents: LeaderEventSink | null;
}

/** The sinks of webhook records. */
export interface WebhookSinks {
  eventType: ReturnType<typeof webhookEventTypeSink>;
  application: ReturnType<typeof webhookApplicationSink>;
  endpoint: ReturnType<typeof webhookEndpointSink>;
  subscription: ReturnType<typeof webhookSubscriptionSink>;
}

/** The webhook store, as a leader writes it. */
export function webhookStoreSinks({
  webhookStore,
  ...options
}: Pick<ReconcilersOptions, 'caches' | 'publisher' | 'queues' | 'shards'> & {
  /** The store of this leader. */
  webhookStore: RedisWebhookStore;
}): WebhookSinks {
  const sinkOptions = { webhooks: webhookStore, publisher: options.publisher, organizations: options.caches.Organization };
  const created =
    (kind: ConfigurationKind) =>
    ({ managedBy }: { managedBy: string }): void =>
      requeueReferrers(options, kind, managedBy);
  return {
    eventType: webhookEventTypeSink(sinkOptions),
    application: webhookApplicationSink({ ...sinkOptions, shards: options.shards, created: created('WebhookApplication') }),
    endpoint: webhookEndpointSink({ ...sinkOptions, created: created('WebhookEndpoint') }),
    subscription: webhookSubscriptionSink(sinkOptions),
  };
}

/** The reconcilers of each kind: the one table from kinds to code. */
export function reconcilersOf(options: ReconcilersOptions): Reconcilers {
  const { caches, publisher, keyring, mailDomains, clock, webhooks } = options;
  const directory = new ShardDirectory(publisher, options.shards);
  const checks = new CodeChecks(options.sandbox);
  const code = new RouteCode({ caches, publisher, checks });
  const credentials = new CredentialsSink(publisher, keyring);
  const cacheOf: CacheByKind<ConfigurationKind> = caches;
  const endpointEnded = (id: string): void => {
    for (const { metadata } of caches.WebhookEndpoint.byIndex(indexes.id, id))
      requeueReferrers(options, 'WebhookEndpoint', nameIn(metadata.namespace, metadata.name));
  };
  const keptIn = <K extends ConfigurationKind, Published, Stored>(
    sink: RecordSink<Published, Stored>,
    rules: RecordRules<K, Published, Stored>,
  ) => new ResourceReconciler(rules, sink, cacheOf[rules.kind], options);
  const published = <K extends ConfigurationKind>(rules: ResourceRules<K>) => {
    const { kind } = rules;
    const { recordKind } = kinds[kind];
    const sink = recordKind === null ? null : (registrySink(publisher, recordKind) as unknown as RecordSink<PublishedRecord<K>>);
    return new ResourceReconciler(rules, sink, cacheOf[kind], options, kindsWithSecrets.includes(kind) ? credentials : null);
  };
  const signed = <K extends 'Source' | 'Destination'>(rules: ResourceRules<K>, sink: RecordSink<PublishedRecord<K>>) =>
    new ResourceReconciler(rules, sink, cacheOf[rules.kind], options, credentials);
  return {
    Organization: new OrganizationReconciler(options),
    Source: signed(
      sourceRules(keyring),
      rotationSink('source', registrySink(publisher, 'source'), { ...options, rotatedBy: rotatingManager('Source', options) }),
    ),
    Destination: signed(
      destinationRules({ ...options, shards: directory }),
      rotationSink('destination', registrySink(publisher, 'destination'), {
        ...options,
        rotatedBy: rotatingManager('Destination', options),
      }),
    ),
    Route: published(routeRules(caches, directory, code, mailDomains)),
    Filter: published(filterRules(caches)),
    Transform: published(transformRules(caches, checks)),
    PayloadSchema: published(payloadSchemaRules(caches, checks)),
    NotificationChannel: published(notificationChannelRules(keyring, mailDomains)),
    HttpCronJob: published(cronJobRules(keyring)),
    Replay: published(replayRules(caches, { webhooks: options.knownWebhooks, clock })),
    ApiKey: published(apiKeyRules(caches, clock)),
    WebhookEventType: keptIn(webhooks.eventType, webhookEventTypeRules(checks, clock)),
    WebhookApplication: keptIn(webhooks.application, {
      kind: 'WebhookApplication',
      evaluate: async (object, organization) => compileWebhookApplication(object, organization),
    }),
    WebhookEndpoint: keptIn(webhooks.endpoint, webhookEndpointRules({ ...options, ended: endpointEnded })),
    WebhookSubscription: keptIn(webhooks.subscription, webhookSubscriptionRules(caches, code)),
  };
}

/** A filter is only checked: it takes effect in the records of the routes that refer to it. */
function filterRules(caches: ControllerCaches): ResourceRules<'Filter'> {
  return {
    kind: 'Filter',
    evaluate: async (object, organization) => {
      const { content, unresolved } = contentOf(caches, object, organization);
      if (unresolved !== undefined) return { unresolved };
      const { refusal } = compileFilterDefinition(content);
      return refusal === undefined ? {} : refusedContent(object, refusal);
    },
  };
}

/** Routes name the record of a transform, so that many share it. */
function transformRules(caches: ControllerCaches, checks: CodeChecks): ResourceRules<'Transform'> {
  return {
    kind: 'Transform',
    evaluate: async (object, organization) => {
      const { content, unresolved } = contentOf(caches, object, organization);
      if (unresolved !== undefined) return { unresolved, isWithdrawn: true };
      const refusal = await checks.transform(content, organization);
      return refusal === null ? { record: compileTransform(object, content, organization) } : refusedContent(object, refusal);
    },
  };
}

/** Routes name the record of a schema, so that many share it. */
function payloadSchemaRules(caches: ControllerCaches, checks: CodeChecks): ResourceRules<'PayloadSchema'> {
  return {
    kind: 'PayloadSchema',
    evaluate: async (object, organization, published) => {
      const { content, unresolved } = contentOf(caches, object, organization);
      if (unresolved !== undefined) return { unresolved, isWithdrawn: true };
      const { jsonSchema, refusal } = await checks.schema(content, organization);
      if (refusal !== undefined) return refusedContent(object, refusal);
      const record = compilePayloadSchema(object, { organization, jsonSchema, published: await published() });
      return { record, status: { version: record.version } };
    },
  };
}
