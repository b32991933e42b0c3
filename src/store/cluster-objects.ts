import type { Key, Version } from './store.ts';

/** A kind that is not Posthorn's own, where the API server serves it. */
export interface ClusterKind {
  /** `v1`, or `<group>/<version>`. */
  apiVersion: string;
  kind: string;
  plural: string;
}

/** What every object says of itself. */
export interface ClusterMetadata {
  name: string;
  namespace?: string;
  uid: string;
  resourceVersion: string;
  generation?: number;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: { uid: string; kind: string; name: string; controller?: boolean }[];
  managedFields?: { manager: string; operation: string; subresource?: string; fieldsV1?: Record<string, unknown> }[];
}

/** An object of such a kind. Beyond its metadata nothing is known of it: who reads it parses. */
export interface ClusterObject {
  metadata: ClusterMetadata;
  [field: string]: unknown;
}

export interface ClusterQuery {
  /** Absent: all. */
  namespace?: string;
  /** As `app=a,tier!=b`; absent: all. */
  labelSelector?: string;
  /** Only objects of this name: a right that is granted for the name is enough then. */
  name?: string;
}

export type ClusterEvent = { type: 'changed'; metadata: ClusterMetadata } | { type: 'bookmark'; version: Version };

/**
 * Objects of kinds that are not Posthorn's own, in a cluster. Errors are those of `ResourceStore`; a kind that the server does not serve is
 * RESOURCE_NOT_FOUND.
 */
export interface ClusterObjects {
  /** Null: there is none. */
  get(kind: ClusterKind, key: Key): Promise<ClusterObject | null>;
  /**
   * Server-side apply, forced. `uid` is that of the object that is to be changed, null when it is to be made: another one that has the name by
   * then is CONFLICT.
   */
  apply(
    kind: ClusterKind,
    object: { metadata: Key & Record<string, unknown> } & Record<string, unknown>,
    options: { manager: string; uid: string | null },
  ): Promise<ClusterObject>;
  /** One that is gone, or another one by now, is no error. */
  delete(kind: ClusterKind, key: Key, uid: string): Promise<void>;
  /** Their metadata, at most 500 of them. */
  list(kind: ClusterKind, query: ClusterQuery): Promise<{ items: ClusterMetadata[]; version: Version }>;
  /** As `ResourceStore.watch`: begins with a bookmark once the stream is open. */
  watch(kind: ClusterKind, from: Version, signal: AbortSignal, query: ClusterQuery): AsyncIterable<ClusterEvent>;
}
