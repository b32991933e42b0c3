import type { Kind, ObjectOf } from '../../resources/kinds.ts';
import type { Key, ListQuery, Page, Version, WatchEvent } from '../store.ts';

/** One change of one object, made only if the object still is as it was. */
export interface Mutation<K extends Kind = Kind> {
  kind: K;
  key: Key;
  /** The object as it was read, and still must be; null: it must not exist. */
  before: ObjectOf<K> | null;
  /** The object after the change, or as it was at its end; the backend sets `metadata.resourceVersion`. */
  object: ObjectOf<K>;
  change: 'added' | 'modified' | 'deleted';
}

/** `conflict`: the object is not as it was. The others speak of the namespace of an object that is to be added. */
export type Refusal = 'conflict' | 'namespaceMissing' | 'namespaceTerminating';

export interface ObjectReference {
  kind: Kind;
  key: Key;
}

/** Where `ObjectStore` keeps its objects: atomic compare-and-set on one object, ordered lists, and the log of changes. */
export interface ObjectBackend {
  read<K extends Kind>(kind: K, key: Key): Promise<ObjectOf<K> | null>;
  /** The object's new version. A deletion has one too: that of its event. */
  commit(mutation: Mutation): Promise<{ version: Version } | { refused: Refusal }>;
  list<K extends Kind>(kind: K, query: ListQuery): Promise<Page<K>>;
  watch<K extends Kind>(kind: K, from: Version, signal: AbortSignal, namespace: string | undefined): AsyncIterable<WatchEvent<K>>;
  /** Objects with an owner reference to this uid. */
  dependents(uid: string): Promise<ObjectReference[]>;
}
