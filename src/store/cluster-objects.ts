import type { Version } from './store.ts';

/** A kind as the API server serves it, mostly one that is not Posthorn's own. */
export interface ClusterKind {
  /** `v1`, or `<group>/<version>`. */
  apiVersion: string;
  kind: string;
  plural: string;
}

/** Fields of every object. */
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
