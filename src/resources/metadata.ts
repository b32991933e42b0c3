/** The part of Kubernetes' ObjectMeta that Posthorn reads or keeps; the stores carry the rest along. */
export interface ObjectMeta {
  name: string;
  /** Absent on cluster-scoped kinds. */
  namespace?: string;
  uid: string;
  /** Opaque; compare for equality only. */
  resourceVersion: string;
  generation: number;
  creationTimestamp: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: ManagedFieldsEntry[];
}

/** Compares the ages of two objects of one namespace, for sorting: the older one first; of the same second that whose name comes first. */
export function byAge(one: { metadata: ObjectMeta }, other: { metadata: ObjectMeta }): number {
  const [a, b] = [one, other].map(({ metadata }) => `${metadata.creationTimestamp} ${metadata.name}`) as [string, string];
  return a < b ? -1 : Number(a > b);
}

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** Kubernetes' managedFields entry; `fieldsV1` is the `f:`/`k:` trie of structured-merge-diff. */
export interface ManagedFieldsEntry {
  manager: string;
  operation: 'Apply' | 'Update';
  apiVersion: string;
  time?: string;
  fieldsType: 'FieldsV1';
  fieldsV1: Record<string, unknown>;
  subresource?: string;
}

/** metav1.Condition. */
export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
  /** RFC 3339, seconds. */
  lastTransitionTime: string;
  observedGeneration?: number;
}
