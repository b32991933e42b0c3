import { destinationRefusal, isServing } from '../compile/destination.ts';
import { canonicalJson } from '../core/canonical-json.ts';
import { plans } from '../core/records.ts';
import { type ConfigurationKind, configurationKinds, type ObjectOf } from '../resources/kinds.ts';
import type { ObjectMeta } from '../resources/metadata.ts';
import { formatKey } from '../runtime/object-key.ts';
import type { WorkQueue } from '../runtime/work-queue.ts';
import type { ResourceCache } from '../store/cache.ts';
import { type ControllerCaches, indexes, nameIn } from './controller-caches.ts';
import type { GoneIds } from './gone-ids.ts';
import type { Pools } from './organization/organization-pool.ts';
import { idOf, isLive } from './references.ts';
import type { StatusWriter } from './status-writer.ts';

export type Queues = Record<ConfigurationKind, WorkQueue>;

export interface RequeueOptions {
  caches: ControllerCaches;
  queues: Queues;
  /** Of each kind, what notes the ids that are gone. */
  reconcilers: { [K in ConfigurationKind]: { readonly gone: GoneIds<K> } };
  status: StatusWriter;
  pools: Pools | null;
}

const kindsInNamespaces = configurationKinds.filter((kind) => kind !== 'Organization');

/**
 * Turns changes in the caches into work: for the object itself and, through the indexes, for those that refer to it. Returns the
 * function that ends it.
 */
export function requeueOnChange({ caches, queues, reconcilers, status, pools }: RequeueOptions): () => void {
  const subscriptions: (() => void)[] = [];
  const cacheOf: { [K in ConfigurationKind]: ResourceCache<K> } = caches;

  const addAll = (kind: ConfigurationKind, index: string, value: string): void => {
    for (const { metadata } of caches[kind].byIndex(index, value)) queues[kind].add(formatKey(metadata));
  };
  const add =
    (kind: ConfigurationKind, index: string) =>
    ({ metadata }: { metadata: ObjectMeta }): void =>
      addAll(kind, index, nameIn(metadata.namespace, metadata.name));
  const addRoutes = (index: string) => add('Route', index);
  /** `addReferrers` queues those that depend on the object, on `facts` of it beside its identity. */
  const onChange = <K extends ConfigurationKind>(
    kind: K,
    addReferrers: (object: ObjectOf<K>) => void = () => {},
    facts: (object: ObjectOf<K>) => unknown = () => null,
  ): void => {
    const cache = cacheOf[kind];
    const { gone } = reconcilers[kind];
    const factsOf = (object: ObjectOf<K> | undefined): string =>
      object === undefined ? '' : canonicalJson([object.metadata.uid, idOf(kind, object), isLive(object), facts(object)]);
    subscriptions.push(
      cache.onChange((key, change) => {
        const { before, after } = change;
        if (status.isOwnWrite(after)) return;
        queues[kind].add(formatKey(key));
        gone.note(key, change);
        if (factsOf(before) === factsOf(after)) return;
        const affected = new Set([before, after].flatMap((object) => (object === undefined ? [] : [object, ...sharingId(cache, object)])));
        for (const object of affected) {
          queues[kind].add(formatKey(object.metadata));
          addReferrers(object);
        }
      }),
    );
  };
  const generationOf = ({ metadata }: { metadata: ObjectMeta }): number => metadata.generation;

  onChange(
    'Organization',
    ({ spec }) => {
      addAll('Organization', indexes.namespace, spec.namespace);
      for (const kind of kindsInNamespaces) addAll(kind, indexes.namespace, spec.namespace);
    },
    ({ metadata, spec }) => [spec.namespace, metadata.generation],
  );
  onChange('Source', addRoutes(indexes.source));
  onChange(
    'Destination',
    (object) => {
      addRoutes(indexes.destination)(object);
      addAll('Organization', indexes.archive, nameIn(object.metadata.namespace, object.metadata.name));
    },
    // Failover passes over those that do not serve.
    ({ spec }) => [destinationRefusal(spec), ...plans.map((plan) => isServing(spec, plan))],
  );
  onChange('Filter', addRoutes(indexes.filter), generationOf);
  onChange(
    'Transform',
    (object) => {
      addRoutes(indexes.transform)(object);
      add('WebhookSubscription', indexes.transform)(object);
    },
    generationOf,
  );
  onChange('PayloadSchema', addRoutes(indexes.schema), generationOf);
  onChange('Route');
  onChange('NotificationChannel', addRoutes(indexes.channel));
  onChange('HttpCronJob');
  onChange(
    'ApiKey',
    ({ metadata, spec }) => {
      const hash = nameIn(metadata.namespace, spec.sha256);
      addAll('ApiKey', indexes.keyMaker, hash);
      addAll('ApiKey', indexes.keyHash, hash);
    },
    ({ spec }) => spec.sha256,
  );
  onChange('WebhookEventType', add('WebhookSubscription', indexes.eventType));
  onChange('WebhookApplication', add('WebhookEndpoint', indexes.application));
  onChange('WebhookEndpoint', add('WebhookSubscription', indexes.endpoint));
  onChange('WebhookSubscription');

  subscriptions.push(
    caches.Secret.onChange(({ namespace, name }) => {
      addAll('Source', indexes.secret, nameIn(namespace, name));
      addAll('Destination', indexes.secret, nameIn(namespace, name));
      addAll('NotificationChannel', indexes.secret, nameIn(namespace, name));
      addAll('HttpCronJob', indexes.secret, nameIn(namespace, name));
      addAll('WebhookEndpoint', indexes.secret, nameIn(namespace, name));
    }),
    caches.Namespace.onChange(({ name }) => addAll('Organization', indexes.namespace, name)),
  );
  const ofPool = pools?.cache.onChange(({ name }, { before, after }) => {
    if ((before !== undefined && isLive(before)) === (after !== undefined && isLive(after))) return;
    for (const { metadata, spec } of caches.Organization.list())
      if (spec.deliveryPool === name) queues.Organization.add(formatKey(metadata));
  });
  if (ofPool !== undefined) subscriptions.push(ofPool);
  return () => {
    for (const end of subscriptions) end();
  };
}

/** The other objects that claim the same id: which of them has it may have changed. */
function sharingId<K extends ConfigurationKind>(cache: ResourceCache<K>, object: ObjectOf<K>): ObjectOf<K>[] {
  return cache.byIndex(indexes.id, idOf(cache.kind, object)).filter(({ metadata }) => metadata.uid !== object.metadata.uid);
}
