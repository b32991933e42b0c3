import { destinationRefusal } from '../compile/destination.ts';
import { canonicalJson } from '../core/canonical-json.ts';
import type { ObjectOf, PosthornKind } from '../resources/kinds.ts';
import { formatKey } from '../runtime/object-key.ts';
import type { WorkQueue } from '../runtime/work-queue.ts';
import type { ResourceCache } from '../store/cache.ts';
import { type ControllerCaches, indexes, nameIn } from './controller-caches.ts';
import type { GoneIds } from './gone-ids.ts';
import { idOf, isLive } from './references.ts';
import type { StatusWriter } from './status-writer.ts';

export const controlledKinds = [
  'Organization',
  'Source',
  'Destination',
  'Route',
  'Filter',
  'Transform',
  'PayloadSchema',
  'NotificationChannel',
  'HttpCronJob',
  'ApiKey',
] as const satisfies readonly PosthornKind[];
export type ControlledKind = (typeof controlledKinds)[number];
export type Queues = Record<ControlledKind, WorkQueue>;

const kindsInNamespaces = [
  'Source',
  'Destination',
  'Route',
  'Filter',
  'Transform',
  'PayloadSchema',
  'NotificationChannel',
  'HttpCronJob',
  'ApiKey',
] as const;

export interface RequeueOptions {
  caches: ControllerCaches;
  queues: Queues;
  gone: { [K in ControlledKind]: GoneIds<K> };
  status: StatusWriter;
}

/**
 * Turns changes in the caches into work: for the object itself and, through the indexes, for those that refer to it. Returns the
 * function that ends it.
 */
export function requeueOnChange({ caches, queues, gone, status }: RequeueOptions): () => void {
  const subscriptions: (() => void)[] = [];

  const addAll = (kind: ControlledKind, index: string, value: string): void => {
    for (const { metadata } of caches[kind].byIndex(index, value)) queues[kind].add(formatKey(metadata));
  };
  /** `facts`: what referrers depend on; `addReferrers` queues them. */
  const onChange = <K extends ControlledKind>(
    kind: K,
    cache: ResourceCache<K>,
    goneIds: GoneIds<K>,
    facts: (object: ObjectOf<K>) => unknown,
    addReferrers: (object: ObjectOf<K>) => void,
  ): void => {
    const factsOf = (object: ObjectOf<K> | undefined): string =>
      object === undefined ? '' : canonicalJson([object.metadata.uid, idOf(kind, object), isLive(object), facts(object)]);
    subscriptions.push(
      cache.onChange((key, change) => {
        const { before, after } = change;
        if (status.isOwnWrite(after)) return;
        queues[kind].add(formatKey(key));
        goneIds.note(key, change);
        if (factsOf(before) === factsOf(after)) return;
        const affected = new Set([before, after].flatMap((object) => (object === undefined ? [] : [object, ...sharingId(cache, object)])));
        for (const object of affected) {
          queues[kind].add(formatKey(object.metadata));
          addReferrers(object);
        }
      }),
    );
  };

  onChange(
    'Organization',
    caches.Organization,
    gone.Organization,
    ({ metadata, spec }) => [spec.namespace, metadata.generation],
    ({ spec }) => {
      addAll('Organization', indexes.namespace, spec.namespace);
      for (const kind of kindsInNamespaces) addAll(kind, indexes.namespace, spec.namespace);
    },
  );
  onChange(
    'Source',
    caches.Source,
    gone.Source,
    () => null,
    ({ metadata }) => addAll('Route', indexes.source, nameIn(metadata.namespace, metadata.name)),
  );
  onChange(
    'Destination',
    caches.Destination,
    gone.Destination,
    ({ spec }) => destinationRefusal(spec),
    ({ metadata }) => addAll('Route', indexes.destination, nameIn(metadata.namespace, metadata.name)),
  );
  onChange(
    'Filter',
    caches.Filter,
    gone.Filter,
    ({ metadata }) => metadata.generation,
    ({ metadata }) => addAll('Route', indexes.filter, nameIn(metadata.namespace, metadata.name)),
  );
  onChange(
    'Transform',
    caches.Transform,
    gone.Transform,
    ({ metadata }) => metadata.generation,
    ({ metadata }) => addAll('Route', indexes.transform, nameIn(metadata.namespace, metadata.name)),
  );
  onChange(
    'PayloadSchema',
    caches.PayloadSchema,
    gone.PayloadSchema,
    ({ metadata }) => metadata.generation,
    ({ metadata }) => addAll('Route', indexes.schema, nameIn(metadata.namespace, metadata.name)),
  );
  onChange(
    'Route',
    caches.Route,
    gone.Route,
    () => null,
    () => {},
  );
  onChange(
    'NotificationChannel',
    caches.NotificationChannel,
    gone.NotificationChannel,
    () => null,
    ({ metadata }) => addAll('Route', indexes.channel, nameIn(metadata.namespace, metadata.name)),
  );
  onChange(
    'HttpCronJob',
    caches.HttpCronJob,
    gone.HttpCronJob,
    () => null,
    () => {},
  );
  onChange(
    'ApiKey',
    caches.ApiKey,
    gone.ApiKey,
    () => null,
    () => {},
  );

  subscriptions.push(
    caches.Secret.onChange(({ namespace, name }) => {
      addAll('Source', indexes.secret, nameIn(namespace, name));
      addAll('Destination', indexes.secret, nameIn(namespace, name));
      addAll('NotificationChannel', indexes.secret, nameIn(namespace, name));
    }),
    caches.Namespace.onChange(({ name }) => addAll('Organization', indexes.namespace, name)),
  );
  return () => {
    for (const end of subscriptions) end();
  };
}

/** The other objects that claim the same id: which of them has it may have changed. */
function sharingId<K extends ControlledKind>(cache: ResourceCache<K>, object: ObjectOf<K>): ObjectOf<K>[] {
  return cache.byIndex(indexes.id, idOf(cache.kind, object)).filter(({ metadata }) => metadata.uid !== object.metadata.uid);
}
