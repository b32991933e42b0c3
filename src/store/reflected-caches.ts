import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import { byKind, type Kind } from '../resources/kinds.ts';
import { ResourceCache, type ResourceCacheOptions } from './cache.ts';
import type { StoreMetrics } from './metrics.ts';
import { Reflector } from './reflector.ts';
import type { ServedObjects } from './served-objects.ts';
import type { ResourceStore } from './store.ts';

export type CacheByKind<K extends Kind> = { readonly [Each in K]: ResourceCache<Each> };

export interface ReflectedCachesOptions<K extends Kind> {
  store: ResourceStore;
  clock: Clock;
  logger: Logger;
  metrics: StoreMetrics;
  /** Absent: the caches have the objects of all installations. */
  served?: ServedObjects;
  /** Options of the cache of one kind. */
  cached(kind: K): Omit<ResourceCacheOptions<K>, 'logger'>;
}

/** A cache of each of some kinds, which a reflector keeps. */
export class ReflectedCaches<K extends Kind> {
  readonly caches: CacheByKind<K>;
  readonly #reflectors: readonly Reflector<K>[];

  constructor(kinds: readonly K[], { cached, served, ...options }: ReflectedCachesOptions<K>) {
    const caches = byKind(kinds, (kind) => new ResourceCache(kind, { logger: options.logger, ...cached(kind) }));
    this.caches = caches as unknown as CacheByKind<K>;
    this.#reflectors = kinds.map((kind) => new Reflector({ ...options, cache: served?.before(caches[kind]) ?? caches[kind] }));
  }

  /** Resolves once the first complete list of every kind is in. */
  get synced(): Promise<void> {
    return Promise.all(this.#reflectors.map(({ synced }) => synced)).then(() => {});
  }

  /** Follows the store until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.run(signal)));
  }
}
