import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { Kind, PosthornObject } from '../resources/kinds.ts';
import type { ObjectMeta } from '../resources/metadata.ts';
import { secretUsesIn } from '../resources/secret-use.ts';
import { ResourceCache } from '../store/cache.ts';
import type { StoreMetrics } from '../store/metrics.ts';
import { Reflector } from '../store/reflector.ts';
import type { ResourceStore } from '../store/store.ts';
import { IdOwners } from './id-owners.ts';
import { SecretWatches } from './secret-watches.ts';

export interface ControllerCachesOptions {
  store: ResourceStore;
  clock: Clock;
  logger: Logger;
  metrics: StoreMetrics;
}

/** Value of the indexes that find objects by the name of another one in their namespace. */
export function nameIn(namespace: string | undefined, name: string): string {
  return `${namespace ?? ''}/${name}`;
}

/** How the caches find the objects that refer to another one. */
export const indexes = {
  namespace: 'namespace',
  secret: 'secret',
  source: 'source',
  destination: 'destination',
  filter: 'filter',
  transform: 'transform',
  schema: 'schema',
  channel: 'channel',
  application: 'application',
  endpoint: 'endpoint',
  eventType: 'eventType',
  archive: 'archive',
  keyHash: 'keyHash',
  keyMaker: 'keyMaker',
  /** Made by the cache itself. */
  id: 'id',
} as const;

const byNamespace = { [indexes.namespace]: ({ metadata }: { metadata: { namespace?: string } }) => [metadata.namespace ?? ''] };

/**
 * The caches of all kinds that the controllers read, with the indexes by which references are followed backwards. They may run
 * before leadership is won, so that a new leader starts warm.
 */
export class ControllerCaches {
  readonly owners = new IdOwners();
  readonly Namespace: ResourceCache<'Namespace'>;
  readonly Secret: ResourceCache<'Secret'>;
  readonly Organization: ResourceCache<'Organization'>;
  readonly Source: ResourceCache<'Source'>;
  readonly Destination: ResourceCache<'Destination'>;
  readonly Route: ResourceCache<'Route'>;
  readonly Filter: ResourceCache<'Filter'>;
  readonly Transform: ResourceCache<'Transform'>;
  readonly PayloadSchema: ResourceCache<'PayloadSchema'>;
  readonly NotificationChannel: ResourceCache<'NotificationChannel'>;
  readonly HttpCronJob: ResourceCache<'HttpCronJob'>;
  readonly ApiKey: ResourceCache<'ApiKey'>;
  readonly WebhookEventType: ResourceCache<'WebhookEventType'>;
  readonly WebhookApplication: ResourceCache<'WebhookApplication'>;
  readonly WebhookEndpoint: ResourceCache<'WebhookEndpoint'>;
  readonly WebhookSubscription: ResourceCache<'WebhookSubscription'>;
  readonly #reflectors: { run(signal: AbortSignal): Promise<void>; synced: Promise<void> }[];
  readonly #secretWatches: SecretWatches;

  constructor(options: ControllerCachesOptions) {
    const { logger } = options;
    this.Namespace = new ResourceCache('Namespace', { logger });
    this.Secret = new ResourceCache('Secret', { logger });
    this.Organization = new ResourceCache('Organization', {
      logger,
      indexes: {
        [indexes.namespace]: ({ spec }) => [spec.namespace],
        [indexes.archive]: ({ spec }) => referredTo(spec, spec.archive?.destinationRef),
      },
    });
    this.Source = new ResourceCache('Source', { logger, indexes: { ...byNamespace, [indexes.secret]: secretNames } });
    this.Destination = new ResourceCache('Destination', { logger, indexes: { ...byNamespace, [indexes.secret]: secretNames } });
    this.Route = new ResourceCache('Route', {
      logger,
      indexes: {
        ...byNamespace,
        [indexes.source]: ({ metadata, spec }) => [nameIn(metadata.namespace, spec.sourceRef.name)],
        [indexes.destination]: routeDestinations,
        [indexes.channel]: routeChannels,
        [indexes.filter]: ({ metadata, spec }) => referredTo(metadata, spec.filterRef),
        [indexes.transform]: ({ metadata, spec }) => referredTo(metadata, spec.transformRef),
        [indexes.schema]: ({ metadata, spec }) => referredTo(metadata, spec.schemaRef),
      },
    });
    this.Filter = new ResourceCache('Filter', { logger, indexes: byNamespace });
    this.Transform = new ResourceCache('Transform', { logger, indexes: byNamespace });
    this.PayloadSchema = new ResourceCache('PayloadSchema', { logger, indexes: byNamespace });
    this.NotificationChannel = new ResourceCache('NotificationChannel', {
      logger,
      indexes: { ...byNamespace, [indexes.secret]: secretNames },
    });
    this.HttpCronJob = new ResourceCache('HttpCronJob', { logger, indexes: { ...byNamespace, [indexes.secret]: secretNames } });
    this.ApiKey = new ResourceCache('ApiKey', {
      logger,
      indexes: {
        ...byNamespace,
        [indexes.keyHash]: ({ metadata, spec }) => [nameIn(metadata.namespace, spec.sha256)],
        [indexes.keyMaker]: ({ metadata, spec }) =>
          spec.createdBy?.sha256 === undefined ? [] : [nameIn(metadata.namespace, spec.createdBy.sha256)],
      },
    });
    this.WebhookEventType = new ResourceCache('WebhookEventType', { logger, indexes: byNamespace });
    this.WebhookApplication = new ResourceCache('WebhookApplication', { logger, indexes: byNamespace });
    this.WebhookEndpoint = new ResourceCache('WebhookEndpoint', {
      logger,
      indexes: {
        ...byNamespace,
        [indexes.application]: ({ metadata, spec }) => referredTo(metadata, spec.applicationRef),
        [indexes.secret]: secretNames,
      },
    });
    this.WebhookSubscription = new ResourceCache('WebhookSubscription', {
      logger,
      indexes: {
        ...byNamespace,
        [indexes.endpoint]: ({ metadata, spec }) => referredTo(metadata, spec.endpointRef),
        [indexes.eventType]: ({ metadata, spec }) => referredTo(metadata, spec.eventTypeRef),
        [indexes.transform]: ({ metadata, spec }) => referredTo(metadata, spec.transformRef),
      },
    });
    const reflector = <K extends Kind>(cache: ResourceCache<K>) => new Reflector({ ...options, cache });
    this.#reflectors = [
      reflector(this.Namespace),
      reflector(this.Organization),
      reflector(this.Source),
      reflector(this.Destination),
      reflector(this.Route),
      reflector(this.Filter),
      reflector(this.Transform),
      reflector(this.PayloadSchema),
      reflector(this.NotificationChannel),
      reflector(this.HttpCronJob),
      reflector(this.ApiKey),
      reflector(this.WebhookEventType),
      reflector(this.WebhookApplication),
      reflector(this.WebhookEndpoint),
      reflector(this.WebhookSubscription),
    ];
    this.#secretWatches = new SecretWatches({ ...options, secrets: this.Secret, organizations: this.Organization });
  }

  /** Resolves once the first complete list of every kind is in; Secrets do not count, they are read by `get`. */
  get synced(): Promise<void> {
    return Promise.all(this.#reflectors.map(({ synced }) => synced)).then(() => {});
  }

  /** Follows the store until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#secretWatches.run(signal), ...this.#reflectors.map((reflector) => reflector.run(signal))]);
  }
}

function referredTo({ namespace }: { namespace?: string }, reference: { name: string } | undefined): string[] {
  return reference === undefined ? [] : [nameIn(namespace, reference.name)];
}

/** All Secrets that the object refers to, also where its type does not need them: the API shows what they hold. */
function secretNames({ metadata, spec }: { metadata: ObjectMeta; spec: unknown }): string[] {
  const names = new Set(secretUsesIn(spec).map(({ reference }) => reference.name));
  return [...names].map((name) => nameIn(metadata.namespace, name));
}

function routeChannels({ metadata, spec }: PosthornObject<'Route'>): string[] {
  return (spec.notifications?.channelRefs ?? []).map(({ name }) => nameIn(metadata.namespace, name));
}

function routeDestinations({ metadata, spec }: PosthornObject<'Route'>): string[] {
  const names = new Set([...spec.destinationRefs, ...(spec.failover?.destinationRefs ?? [])].map(({ name }) => name));
  return [...names].map((name) => nameIn(metadata.namespace, name));
}
