import { resourceId } from '../core/ids.ts';
import type { Logger } from '../core/logger.ts';
import { type Kind, kinds, type ObjectOf } from '../resources/kinds.ts';
import type { ObjectMeta } from '../resources/metadata.ts';
import type { Key } from './store.ts';

/** A change of one object: `before` is absent when it is new, `after` when it is gone; both differ in uid when it was recreated. */
export interface CacheChange<K extends Kind> {
  before?: ObjectOf<K>;
  after?: ObjectOf<K>;
}

export type CacheListener<K extends Kind> = (key: Key, change: CacheChange<K>) => void;

/** Values under which `byIndex` finds the object; none: it is not in this index. */
export type IndexFunction<K extends Kind> = (object: ObjectOf<K>) => readonly string[];

export interface ResourceCacheOptions<K extends Kind> {
  indexes?: Record<string, IndexFunction<K>>;
  /** Whether of all objects, or of which. Default false: managedFields is more than half of an object's memory. */
  keepManagedFields?: boolean | ((object: ObjectOf<K>) => boolean);
  logger: Logger;
}

/**
 * Objects of one kind as a `Reflector` last saw them. What it hands out is shared: readers never change it.
 * Lookups cost a map access; `list` and `byIndex` cost their answer, whatever other namespaces have.
 */
export class ResourceCache<K extends Kind> {
  readonly kind: K;
  readonly #objects = new Map<string, ObjectOf<K>>();
  readonly #byUid = new Map<string, ObjectOf<K>>();
  readonly #indexes = new Map<string, Index<K>>();
  readonly #ofNamespace = new Index<K>(({ metadata }) => [metadata.namespace ?? '']);
  readonly #newestFirst = new Map<string, readonly ObjectOf<K>[]>();
  /** By id, where several objects claim it: see `oldestWithId`. */
  readonly #oldestWithId = new Map<string, readonly ObjectOf<K>[]>();
  readonly #listeners = new Set<CacheListener<K>>();
  /** Null: objects of the kind have no ids. */
  readonly #idPrefix: string | null;
  readonly #keepsManagedFields: (object: ObjectOf<K>) => boolean;
  #isFilled = false;
  readonly #logger: Logger;

  constructor(kind: K, options: ResourceCacheOptions<K>) {
    this.kind = kind;
    const { keepManagedFields: kept = false } = options;
    this.#keepsManagedFields = typeof kept === 'boolean' ? () => kept : kept;
    this.#logger = options.logger;
    for (const [name, valuesOf] of Object.entries(options.indexes ?? {})) this.#indexes.set(name, new Index(valuesOf));
    this.#idPrefix = idPrefixOf(kind);
    if (this.#idPrefix !== null) this.#indexes.set(idIndex, new Index((object) => [this.#idOf(object)]));
  }

  /** Whether a complete list was taken in: before that, what is absent is unknown. */
  get isFilled(): boolean {
    return this.#isFilled;
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: Key): ObjectOf<K> | undefined {
    return this.#objects.get(keyText(key));
  }

  getByUid(uid: string): ObjectOf<K> | undefined {
    return this.#byUid.get(uid);
  }

  /** By API id. An id can be claimed by annotation, so that two namespaces may hold it: pass the caller's namespace. */
  getById(id: string, namespace?: string): ObjectOf<K> | undefined {
    return this.byIndex(idIndex, id).find((object) => namespace === undefined || object.metadata.namespace === namespace);
  }

  /**
   * The oldest object of each namespace that claims an id and is not being deleted. `exceptUid`: as if this object were not there. Thousands of objects
   * may claim an id: it is looked for once, and again after a change that may make it another one.
   */
  oldestWithId(id: string, exceptUid?: string): readonly ObjectOf<K>[] {
    const known = this.#oldestWithId.get(id);
    if (known !== undefined && !known.some(({ metadata }) => metadata.uid === exceptUid)) return known;
    const claiming = this.byIndex(idIndex, id).filter(
      ({ metadata }) => metadata.deletionTimestamp === undefined && metadata.uid !== exceptUid,
    );
    const oldest = new Map<string, ObjectOf<K>>();
    for (const object of claiming) {
      const { namespace = '' } = object.metadata;
      const other = oldest.get(namespace);
      if (other === undefined || isOlder(object, other)) oldest.set(namespace, object);
    }
    const found = [...oldest.values()];
    if (exceptUid === undefined && claiming.length > found.length) this.#oldestWithId.set(id, found);
    return found;
  }

  /** In no particular order. */
  list(namespace?: string): ObjectOf<K>[] {
    return namespace === undefined ? [...this.#objects.values()] : this.#at(this.#ofNamespace.keysOf(namespace));
  }

  /** Objects of a namespace by their time of creation. Sorted once, and again after a change. */
  newestFirst(namespace: string): readonly ObjectOf<K>[] {
    const known = this.#newestFirst.get(namespace);
    if (known !== undefined) return known;
    const sorted = this.list(namespace).sort(byAge);
    this.#newestFirst.set(namespace, sorted);
    return sorted;
  }

  /** Throws when there is no such index: its name is a mistake in the program. */
  byIndex(index: string, value: string): ObjectOf<K>[] {
    const found = this.#indexes.get(index);
    if (found === undefined) throw new Error(`the cache of ${this.kind} has no index ${index}`);
    return this.#at(found.keysOf(value));
  }

  #at(keys: Iterable<string>): ObjectOf<K>[] {
    const objects: ObjectOf<K>[] = [];
    for (const key of keys) {
      const object = this.#objects.get(key);
      if (object !== undefined) objects.push(object);
    }
    return objects;
  }

  /** How many there are in a namespace. */
  sizeOf(namespace: string): number {
    return this.#ofNamespace.sizeOf(namespace);
  }

  /** Called after the cache has taken the change in. What a listener throws is logged. Returns the function that ends it. */
  onChange(listener: CacheListener<K>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The object as the cache would keep it. */
  asKept(object: ObjectOf<K>): ObjectOf<K> {
    return this.#keepsManagedFields(object) ? object : withoutManagedFields(object);
  }

  /** Takes in an added or changed object. */
  upsert(object: ObjectOf<K>): void {
    const key = keyText(object.metadata);
    const before = this.#objects.get(key);
    if (before?.metadata.resourceVersion === object.metadata.resourceVersion && before.metadata.uid === object.metadata.uid) return;
    const after = this.asKept(object);
    this.#forget(key);
    this.#objects.set(key, after);
    this.#newestFirst.delete(after.metadata.namespace ?? '');
    this.#byUid.set(after.metadata.uid, after);
    for (const index of this.#indexes.values()) index.add(key, after);
    this.#ofNamespace.add(key, after);
    this.#claim(after);
    this.#notify(after, before === undefined ? { after } : { before, after });
  }

  /** Removes the object, unless one with another uid has its name. */
  remove(object: { metadata: { name: string; namespace?: string; uid: string } }): void {
    const key = keyText(object.metadata);
    const before = this.#objects.get(key);
    if (before === undefined || before.metadata.uid !== object.metadata.uid) return;
    this.#forget(key);
    this.#notify(before, { before });
  }

  /**
   * Takes in a complete list: removes what is not in it (of `namespace`, when the list was of one), then upserts the
   * rest. Objects that did not change make no notification.
   */
  replace(objects: readonly ObjectOf<K>[], namespace?: string): void {
    const present = new Set(objects.map((object) => keyText(object.metadata)));
    for (const object of this.list(namespace)) {
      if (!present.has(keyText(object.metadata))) this.remove(object);
    }
    for (const object of objects) this.upsert(object);
    this.#isFilled = true;
  }

  #forget(key: string): void {
    const before = this.#objects.get(key);
    if (before === undefined) return;
    this.#objects.delete(key);
    this.#newestFirst.delete(before.metadata.namespace ?? '');
    this.#byUid.delete(before.metadata.uid);
    for (const index of this.#indexes.values()) index.delete(key, before);
    this.#ofNamespace.delete(key, before);
    const id = this.#idOf(before);
    if (this.#oldestWithId.get(id)?.some(({ metadata }) => metadata.uid === before.metadata.uid) === true) this.#oldestWithId.delete(id);
  }

  #claim(object: ObjectOf<K>): void {
    const id = this.#idOf(object);
    const { namespace, deletionTimestamp } = object.metadata;
    const oldest = this.#oldestWithId.get(id);
    if (oldest === undefined || deletionTimestamp !== undefined) return;
    const other = oldest.find(({ metadata }) => metadata.namespace === namespace);
    if (other === undefined || isOlder(object, other)) this.#oldestWithId.delete(id);
  }

  #idOf({ metadata }: ObjectOf<K>): string {
    return this.#idPrefix === null ? '' : resourceId(this.#idPrefix, metadata);
  }

  #notify(object: ObjectOf<K>, change: CacheChange<K>): void {
    const { name, namespace } = object.metadata;
    const key: Key = namespace === undefined ? { name } : { name, namespace };
    for (const listener of this.#listeners) {
      try {
        listener(key, change);
      } catch (error) {
        this.#logger.error({ err: error, kind: this.kind, ...key }, 'a cache listener failed');
      }
    }
  }
}

function byAge({ metadata: one }: ObjectOf<Kind>, { metadata: other }: ObjectOf<Kind>): number {
  if (one.creationTimestamp !== other.creationTimestamp) return one.creationTimestamp < other.creationTimestamp ? 1 : -1;
  return one.name < other.name ? -1 : 1;
}

/** Whether the first was made before the other; of two of the same second the one with the lower uid counts as older. */
export function isOlder({ metadata: one }: { metadata: ObjectMeta }, { metadata: other }: { metadata: ObjectMeta }): boolean {
  return one.creationTimestamp === other.creationTimestamp ? one.uid < other.uid : one.creationTimestamp < other.creationTimestamp;
}

const idIndex = 'id';

function idPrefixOf(kind: Kind): string | null {
  return kind === 'Namespace' || kind === 'Secret' || kinds[kind].idPrefix === '' ? null : kinds[kind].idPrefix;
}

function keyText(key: Key): string {
  return `${key.namespace ?? ''}/${key.name}`;
}

function withoutManagedFields<K extends Kind>(object: ObjectOf<K>): ObjectOf<K> {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

class Index<K extends Kind> {
  readonly #valuesOf: IndexFunction<K>;
  readonly #keys = new Map<string, Set<string>>();

  constructor(valuesOf: IndexFunction<K>) {
    this.#valuesOf = valuesOf;
  }

  keysOf(value: string): Iterable<string> {
    return this.#keys.get(value) ?? [];
  }

  sizeOf(value: string): number {
    return this.#keys.get(value)?.size ?? 0;
  }

  add(key: string, object: ObjectOf<K>): void {
    for (const value of this.#valuesOf(object)) {
      const keys = this.#keys.get(value);
      if (keys === undefined) this.#keys.set(value, new Set([key]));
      else keys.add(key);
    }
  }

  delete(key: string, object: ObjectOf<K>): void {
    for (const value of this.#valuesOf(object)) {
      const keys = this.#keys.get(value);
      keys?.delete(key);
      if (keys?.size === 0) this.#keys.delete(value);
    }
  }
}
