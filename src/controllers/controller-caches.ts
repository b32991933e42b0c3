import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import {
  byKind,
  type ConfigurationKind,
  configurationKinds,
  definitionOf,
  type ObjectOf,
  type PosthornObject,
} from '../resources/kinds.ts';
import { kindsWithSecrets, namespaceOf, namesReferredTo, targetsOf } from '../resources/references.ts';
import { secretUsesIn } from '../resources/secret-use.ts';
import { isSharedKind, sharedFromOf } from '../resources/sharing.ts';
import { type IndexFunction, ResourceCache } from '../store/cache.ts';
import type { StoreMetrics } from '../store/metrics.ts';
import { type CacheByKind, ReflectedCaches } from '../store/reflected-caches.ts';
import { ServedObjects } from '../store/served-objects.ts';
import type { ResourceStore } from '../store/store.ts';
import { isDisabled } from './disabled.ts';
import { IdOwners } from './id-owners.ts';
import { RetainedOrganizations } from './retained-organizations.ts';
import { SecretWatches } from './secret-watches.ts';

export interface ControllerCachesOptions {
  store: ResourceStore;
  clock: Clock;
  logger: Logger;
  metrics: StoreMetrics;
  /** That of the installation, which no organization may have; null or absent: it has none. */
  ownNamespace?: string | null;
  /** Whose Organizations, with what is in their namespaces, the caches have; null: those of all. */
  servedInstallation: string | null;
}

/** Value of the indexes that find objects by the name of another one in their namespace. */
export function nameIn(namespace: string | undefined, name: string): string {
  return `${namespace ?? ''}/${name}`;
}

/** How the caches find objects, beside the name of a kind, which finds those that refer to an object of it, and the `indexes` of their own kind. */
export const indexes = {
  namespace: 'namespace',
  secret: 'Secret',
  /** What takes over an object of another organization: by its `organization/name`, and by `organization/`. */
  sharedFrom: 'sharedFrom',
  /** Made by the cache itself. */
  id: 'id',
} as const;

type ReflectedKind = ConfigurationKind | 'Namespace';

/**
 * The caches of all kinds that the controllers read, with the indexes by which references are followed backwards. They may run
 * before leadership is won, so that a new leader starts warm.
 */
export interface ControllerCaches extends CacheByKind<ReflectedKind | 'Secret'> {
  readonly owners: IdOwners;
  /** Which namespaces are those of other installations. */
  readonly served: Pick<ServedObjects, 'isElsewhere' | 'onChange'>;
  readonly retained: RetainedOrganizations;
  /** Resolves once the first complete list of every kind is in; Secrets do not count, they are read by `get`. */
  readonly synced: Promise<void>;
  /** Follows the store until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
}

export function controllerCaches(options: ControllerCachesOptions): ControllerCaches {
  const { logger, ownNamespace = null } = options;
  const served = new ServedObjects(options.servedInstallation);
  const reflected = new ReflectedCaches<ReflectedKind>(['Namespace', ...configurationKinds], {
    ...options,
    served,
    // The condition Ready names who disabled an object.
    cached: (kind) => (kind === 'Namespace' ? {} : { indexes: indexesOf(kind, ownNamespace), keepManagedFields: isDisabled }),
  });
  const { caches } = reflected;
  const secrets = new ResourceCache('Secret', { logger });
  const secretWatches = new SecretWatches({ ...options, secrets, organizations: caches.Organization });
  return {
    ...caches,
    Secret: secrets,
    owners: new IdOwners(),
    served,
    retained: new RetainedOrganizations(),
    synced: reflected.synced,
    run: async (signal) => {
      await Promise.all([secretWatches.run(signal), reflected.run(signal)]);
    },
  };
}

type Configuration = PosthornObject<ConfigurationKind>;

function sharedFromIndex(spec: object): string[] {
  const from = sharedFromOf(spec);
  return from === undefined ? [] : [nameIn(from.organization, from.name), nameIn(from.organization, '')];
}

function indexesOf(kind: ConfigurationKind, ownNamespace: string | null): Record<string, IndexFunction<ReflectedKind>> {
  const { indexes: further = {} } = definitionOf(kind);
  const index = (valuesOf: (object: Configuration) => readonly string[]) => (object: ObjectOf<ReflectedKind>) =>
    valuesOf(object as Configuration);
  const names = (namesOf: (object: Configuration) => readonly string[]) =>
    index((object) => namesOf(object).map((name) => nameIn(namespaceOf(object), name)));
  return {
    // Objects in the namespace of the installation have no organization, whatever an Organization specifies.
    [indexes.namespace]: index((object) =>
      object.kind === 'Organization' && namespaceOf(object) === ownNamespace ? [] : [namespaceOf(object)],
    ),
    ...byKind(targetsOf(kind), (target) => names((object) => namesReferredTo(object, target))),
    // All Secrets that the object refers to, also where its type does not need them: the API shows what they hold.
    ...(kindsWithSecrets.includes(kind) && {
      [indexes.secret]: names(({ spec }) => [...new Set(secretUsesIn(spec).map(({ reference }) => reference.name))]),
    }),
    ...(isSharedKind(kind) && { [indexes.sharedFrom]: index(({ spec }) => sharedFromIndex(spec)) }),
    ...byKind(Object.keys(further), (name) => names(({ spec }) => further[name]?.(spec) ?? [])),
  };
}
