import { isDeepStrictEqual } from 'node:util';
import { destinationRefusal, isServing } from '../compile/destination.ts';
import { canonicalJson } from '../core/canonical-json.ts';
import { defaultPool } from '../core/default-pool.ts';
import { plans } from '../core/records.ts';
import { type ConfigurationKind, configurationKinds, definitionOf, type ObjectOf } from '../resources/kinds.ts';
import { kindsWithSecrets, referrersOf } from '../resources/references.ts';
import { type SharedKind, sharedKinds } from '../resources/sharing.ts';
import { formatKey } from '../runtime/object-key.ts';
import type { WorkQueue } from '../runtime/work-queue.ts';
import type { CacheChange, ResourceCache } from '../store/cache.ts';
import { keysBelow } from './api-key/api-key-rules.ts';
import { type ControllerCaches, indexes, nameIn } from './controller-caches.ts';
import type { DeletedObjectIds } from './deleted-object-ids.ts';
import { hasSettledId, idOf, isLive } from './held-ids.ts';
import type { Pools } from './organization/organization-pool.ts';
import { referenceStateOf } from './reference-state.ts';
import { takersFrom, takersOf } from './shared-content.ts';
import type { StatusWriter } from './status-writer.ts';

export type Queues = Readonly<Record<ConfigurationKind, WorkQueue>>;

export interface RequeueOptions {
  caches: ControllerCaches;
  queues: Queues;
  reconcilers: { readonly [K in ConfigurationKind]: { readonly gone: DeletedObjectIds<K> } };
  status: StatusWriter;
  pools: Pools | null;
}

type Requeuing = Pick<RequeueOptions, 'caches' | 'queues'>;

/** Requeues the objects that refer to an object of the kind, and those of other organizations that take it over; `referred`: its `namespace/name`. */
export function requeueReferrers(into: Requeuing, kind: ConfigurationKind, referred: string): void {
  for (const referrer of referrersOf(kind)) addAll(into, referrer, kind, referred);
  requeueTakers(into, takersOf(into.caches, kind, referred));
}

/** Requeues the takers and the objects that refer to them, such as routes, whose records contain the filter of a taker. */
function requeueTakers(into: Requeuing, takers: readonly ObjectOf<SharedKind>[]): void {
  for (const { kind, metadata } of takers) {
    into.queues[kind].add(formatKey(metadata));
    for (const referrer of referrersOf(kind)) addAll(into, referrer, kind, nameIn(metadata.namespace, metadata.name));
  }
}

/** Requeues the objects of the kind that an index of its cache finds. */
function addAll({ caches, queues }: Requeuing, kind: ConfigurationKind, index: string, value: string): void {
  for (const { metadata } of caches[kind].byIndex(index, value)) queues[kind].add(formatKey(metadata));
}

/** What referrers depend on of an object beside its identity, where that is other than its generation or nothing. */
const factsOfKind: { readonly [K in ConfigurationKind]?: (object: ObjectOf<K>) => unknown } = {
  // Failover passes over those that do not serve, and routes with it refuse those with order.
  Destination: ({ spec }) => [destinationRefusal(spec), spec.ordered === true, ...plans.map((plan) => isServing(spec, plan))],
  ApiKey: ({ spec }) => [spec.sha256, spec.expiresAt ?? null],
  Organization: (object) => [object.metadata.generation, hasSettledId(object)],
};

/**
 * Requeues on changes in the caches: the object itself and, through the indexes, those that refer to it. Returns the
 * function that ends it.
 */
export function requeueOnChange({ caches, queues, reconcilers, status, pools }: RequeueOptions): () => void {
  const subscriptions: (() => void)[] = [];
  const cacheOf: { [K in ConfigurationKind]: ResourceCache<K> } = caches;

  const into = { caches, queues };
  /** Objects that depend on one of the kind by something else than a reference to its name. */
  const furtherReferrers: { readonly [K in ConfigurationKind]?: (object: ObjectOf<K>) => void } = {
    Organization: ({ metadata, spec }) => {
      for (const kind of configurationKinds) addAll(into, kind, indexes.namespace, spec.namespace);
      // Which of several organizations has the namespace may have changed.
      const organizations = new Set([metadata.name, ...caches.Organization.byIndex(indexes.namespace, spec.namespace).map(nameOf)]);
      for (const organization of organizations) for (const kind of sharedKinds) requeueTakers(into, takersFrom(caches, kind, organization));
    },
    ApiKey: ({ metadata, spec }) => {
      addAll(into, 'ApiKey', 'keyHash', nameIn(metadata.namespace, spec.sha256));
      for (const key of keysBelow(caches.ApiKey, metadata.namespace, spec.sha256)) queues.ApiKey.add(formatKey(key.metadata));
    },
    WebhookEventType: ({ metadata, spec }) => addAll(into, 'Replay', 'eventType', nameIn(metadata.namespace, spec.name)),
  };
  const follow = <K extends ConfigurationKind>(kind: K): void => {
    const cache = cacheOf[kind];
    const { gone } = reconcilers[kind];
    const { referrersReadSpec } = definitionOf(kind);
    const isReferred = referrersOf(kind).length > 0;
    const facts = factsOfKind[kind] ?? (({ metadata }: ObjectOf<K>) => (referrersReadSpec ? metadata.generation : null));
    const factsOf = (object: ObjectOf<K> | undefined): string =>
      object === undefined ? '' : canonicalJson([object.metadata.uid, idOf(kind, object), isLive(object), facts(object)]);
    subscriptions.push(
      cache.onChange((key, change) => {
        const { before, after } = change;
        if (isReferred && hasOtherStanding(change)) requeueReferrers(into, kind, nameIn(key.namespace, key.name));
        if (status.isOwnWrite(after)) return;
        queues[kind].add(formatKey(key));
        gone.note(key, change);
        if (factsOf(before) === factsOf(after)) return;
        const affected = new Set([before, after].flatMap((object) => (object === undefined ? [] : [object, ...sharingId(cache, object)])));
        for (const object of affected) {
          const { namespace, name } = object.metadata;
          queues[kind].add(formatKey(object.metadata));
          requeueReferrers(into, kind, nameIn(namespace, name));
          furtherReferrers[kind]?.(object);
        }
      }),
    );
  };
  for (const kind of configurationKinds) follow(kind);

  subscriptions.push(
    caches.Secret.onChange(({ namespace, name }) => {
      for (const kind of kindsWithSecrets) addAll(into, kind, indexes.secret, nameIn(namespace, name));
    }),
    caches.Namespace.onChange(({ name }) => addAll(into, 'Organization', indexes.namespace, name)),
    caches.served.onChange((namespace) => addAll(into, 'Organization', indexes.namespace, namespace)),
  );
  const ofPool = pools?.cache.onChange(({ name }, { before, after }) => {
    if ((before !== undefined && isLive(before)) === (after !== undefined && isLive(after))) return;
    for (const { metadata, spec } of caches.Organization.list())
      if (name === defaultPool || spec.deliveryPool === name) queues.Organization.add(formatKey(metadata));
  });
  if (ofPool !== undefined) subscriptions.push(ofPool);
  return () => {
    for (const end of subscriptions) end();
  };
}

const nameOf = ({ metadata }: { metadata: { name: string } }): string => metadata.name;

/** Whether referrers report something else about an object that stays: also when its status was written here. */
function hasOtherStanding({ before, after }: CacheChange<ConfigurationKind>): boolean {
  if (before === undefined || after === undefined) return false;
  return !isDeepStrictEqual(referenceStateOf(before), referenceStateOf(after));
}

/** Returns the other objects that claim the same id and may have got it or lost it by a change of this one: the oldest of each namespace. */
function sharingId<K extends ConfigurationKind>(cache: ResourceCache<K>, object: ObjectOf<K>): readonly ObjectOf<K>[] {
  return cache.oldestWithId(idOf(cache.kind, object), object.metadata.uid);
}
