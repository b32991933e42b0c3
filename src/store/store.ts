import type { Kind, ObjectOf, SecretObject } from '../resources/kinds.ts';
import type { ObjectMeta } from '../resources/metadata.ts';

/** Name of an object; `namespace` is absent exactly for cluster-scoped kinds. */
export interface Key {
  namespace?: string;
  name: string;
}

/** Kinds that everybody with a store may read. */
export type ReadableKind = Exclude<Kind, 'Secret'>;

/** Opaque version of an object or of a list; compare for equality only. */
export type Version = string & { readonly __brand: 'Version' };

/** The version of an object; a watch can resume from it. */
export function versionOf(object: { metadata: { resourceVersion: string } }): Version {
  return object.metadata.resourceVersion as Version;
}

/** Writer. Git, kubectl and the manifests directory bring managers of their own. */
export type FieldManager =
  | 'posthorn-controller'
  | 'posthorn-status'
  | 'posthorn-health'
  | 'posthorn-mail'
  | 'posthorn-api'
  | 'posthorn-manifests'
  | (string & {});

/** A partial object as server-side apply takes it: only the fields that the manager owns. */
export interface ApplyObject<K extends Kind = Kind> {
  kind: K;
  metadata: {
    name: string;
    namespace?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    finalizers?: string[];
    ownerReferences?: ObjectOf<K>['metadata']['ownerReferences'];
  };
  spec?: unknown;
  /** Secrets only: base64 values. */
  data?: Record<string, string>;
  type?: string;
}

export interface ApplyOptions {
  manager: FieldManager;
  /** Take over fields that another manager owns. Default false: such a field is `FIELD_MANAGED`. */
  force?: boolean;
  /** Refuse with `CONFLICT` unless the object has this version. */
  ifVersion?: Version;
}

export interface ApplyStatusOptions extends ApplyOptions {
  /** Refuse with CONFLICT when the object has been recreated meanwhile. */
  ifUid?: string;
  /**
   * New status of the object at `ifVersion` after this apply: the fields given and what others own. An adapter may
   * replace the status by it where that costs the server less than an apply.
   */
  whole?: Record<string, unknown>;
}

export interface ListQuery {
  /** Absent: all namespaces. */
  namespace?: string;
  /** Most objects in one page; absent: the adapter's own (500). */
  limit?: number;
  continueToken?: string;
}

export interface Page<K extends Kind> {
  items: ObjectOf<K>[];
  /** The start of a watch; the same on all pages of one list. */
  version: Version;
  continueToken?: string;
}

export type WatchEvent<K extends Kind> =
  | { type: 'added' | 'modified' | 'deleted'; object: ObjectOf<K> }
  | { type: 'bookmark'; version: Version };

/**
 * The port to resources. Semantics are those of the Kubernetes API server: strict field validation,
 * defaults, CEL rules (also on transitions), `generation` grows with changes of spec only, status through its own
 * verb, server-side apply with field ownership, finalizers, owner references, 404/409/410 as typed errors.
 *
 * Errors are `PosthornError`s: RESOURCE_NOT_FOUND, ALREADY_EXISTS, CONFLICT (stale version), FIELD_MANAGED (details:
 * field path → managers), VALIDATION_FAILED (details: field path → complaints), EXPIRED (watch version or continue
 * token too old), UNAVAILABLE (with retryAfterSeconds when known), FORBIDDEN.
 *
 * Every call ends within the adapter's deadline. `watch` ends without an error when the server closes the stream. Its
 * first event is a bookmark of `from`, once the stream is open; a deleted object comes with the version of its deletion.
 *
 * `list` and `watch` of Secrets yield objects without `data` and `type`: callers that may list Secrets would otherwise read
 * them all. `SecretStore` reads one with its data.
 *
 * An object needs its namespace: `create` and `apply` answer RESOURCE_NOT_FOUND when it is missing, FORBIDDEN while it is
 * being deleted. Deleting a namespace deletes what is in it.
 */
export interface ResourceStore {
  get<K extends ReadableKind>(kind: K, key: Key): Promise<ObjectOf<K>>;
  /** The metadata of an object, with managedFields. Needs the right to list the kind, not that to get it. */
  getMetadata(kind: Kind, key: Key): Promise<ObjectMeta>;
  list<K extends Kind>(kind: K, query?: ListQuery): Promise<Page<K>>;
  watch<K extends Kind>(kind: K, from: Version, signal: AbortSignal, query?: { namespace?: string }): AsyncIterable<WatchEvent<K>>;
  create<K extends Kind>(object: ApplyObject<K>, options: { manager: FieldManager }): Promise<ObjectOf<K>>;
  /**
   * Server-side apply: makes the object when it is missing. An apply that changes nothing leaves the version. An empty list has no owner in
   * Kubernetes: null requests its removal.
   */
  apply<K extends Kind>(object: ApplyObject<K>, options: ApplyOptions): Promise<ObjectOf<K>>;
  /**
   * Server-side apply of the status subresource: fields of `status` that this manager gave before and gives no more are
   * removed.
   */
  applyStatus<K extends Kind>(kind: K, key: Key, status: Record<string, unknown>, options: ApplyStatusOptions): Promise<ObjectOf<K>>;
  /** With finalizers the object stays, with `deletionTimestamp`, until the last one is gone. */
  delete(kind: Kind, key: Key, precondition?: { version?: Version; uid?: string }): Promise<void>;
}

/** Reads Secrets with their data. A port of its own, for what decides who may use a Secret; nothing else is given it. Errors as of `ResourceStore`. */
export interface SecretStore {
  getSecret(key: Key): Promise<SecretObject>;
}

/** Port of an adapter. */
export type CompleteStore = ResourceStore & SecretStore;
