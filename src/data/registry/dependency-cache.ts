import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/clock.ts';
import { Doorkeeper } from './doorkeeper.ts';

/** The result of a load, and the change keys that invalidate it. `isCacheable` false: the value is returned, not cached. */
export interface Loaded<T> {
  value: T;
  dependsOn: readonly string[];
  isCacheable: boolean;
}

interface Entry {
  value: unknown;
  dependsOn: readonly string[];
}

interface Fill {
  promise: Promise<Loaded<unknown>>;
  /** Change keys that were invalidated while the load was under way; null after a flush. */
  changed: Set<string> | null;
}

/**
 * A bounded cache in front of slow loads. Loads of one key that overlap are one load; what was invalidated while its
 * load was under way is not kept, and a caller after the invalidation gets a new load.
 */
export class DependencyCache {
  readonly #entries: LRUCache<string, Entry>;
  readonly #dependents = new Map<string, Set<string>>();
  readonly #joinable = new Map<string, Fill>();
  readonly #fills = new Set<Fill>();
  readonly #doorkeeper: Doorkeeper | null;

  /** `aging`: entries are reloaded after `keptMs`. `keepsFirst` false: a value is cached from the third load on. */
  constructor(maxEntries: number, { aging, keepsFirst = true }: { aging?: { keptMs: number; clock: Clock }; keepsFirst?: boolean } = {}) {
    this.#doorkeeper = keepsFirst ? null : new Doorkeeper();
    this.#entries = new LRUCache({
      // With `max` it would allocate for as many at once.
      maxSize: maxEntries,
      sizeCalculation: () => 1,
      dispose: (entry, key) => this.#unlink(key, entry),
      ...(aging === undefined ? {} : { ttl: aging.keptMs, ttlResolution: 0, perf: aging.clock }),
    });
  }

  /** The cached value, or that of `load`. The caller's keys determine the types of the values. */
  async get<T>(key: string, load: () => Promise<Loaded<T>>): Promise<T> {
    const entry = this.#entries.get(key);
    if (entry !== undefined) return entry.value as T;
    const joined = this.#joinable.get(key);
    if (joined !== undefined) return (await joined.promise).value as T;
    return await this.#fill(key, load);
  }

  /** Invalidates everything that depends on the change key. */
  invalidate(changeKey: string): void {
    for (const key of this.#dependents.get(changeKey) ?? []) this.#entries.delete(key);
    for (const fill of this.#fills) fill.changed?.add(changeKey);
    // Dependencies of a load under way are known at its end only; no caller joins one that began before a change.
    this.#joinable.clear();
  }

  flush(): void {
    this.#entries.clear();
    for (const fill of this.#fills) fill.changed = null;
    this.#joinable.clear();
  }

  get size(): number {
    return this.#entries.size;
  }

  async #fill<T>(key: string, load: () => Promise<Loaded<T>>): Promise<T> {
    const promise = load();
    const fill: Fill = { promise, changed: new Set() };
    this.#joinable.set(key, fill);
    this.#fills.add(fill);
    try {
      const { value, dependsOn, isCacheable } = await promise;
      const { changed } = fill;
      const isCurrent = changed !== null && !dependsOn.some((changeKey) => changed.has(changeKey));
      if (isCacheable && isCurrent && this.#doorkeeper?.admits(key) !== false) this.#keep(key, { value, dependsOn });
      return value;
    } finally {
      this.#fills.delete(fill);
      if (this.#joinable.get(key) === fill) this.#joinable.delete(key);
    }
  }

  #keep(key: string, entry: Entry): void {
    this.#entries.set(key, entry);
    for (const changeKey of entry.dependsOn) {
      const dependents = this.#dependents.get(changeKey);
      if (dependents === undefined) this.#dependents.set(changeKey, new Set([key]));
      else dependents.add(key);
    }
  }

  #unlink(key: string, entry: Entry): void {
    for (const changeKey of entry.dependsOn) {
      const dependents = this.#dependents.get(changeKey);
      if (dependents?.delete(key) === true && dependents.size === 0) this.#dependents.delete(changeKey);
    }
  }
}
