import { canonicalJson } from '../../core/canonical-json.ts';
import { PosthornError } from '../../core/errors.ts';
import { admit, admitStatus } from '../../resources/admission.ts';
import { invalidObject } from '../../resources/causes.ts';
import { isRecord } from '../../resources/field-tree.ts';
import { type Kind, kindPath, type ObjectOf } from '../../resources/kinds.ts';
import { mergeSchema } from '../../resources/merge-schema.ts';
import type { ObjectMeta } from '../../resources/metadata.ts';
import { pruneNulls } from '../../resources/null-pruning.ts';
import type { ApplyObject } from '../store.ts';
import { readOwnerships, writeOwnerships } from './managed-fields.ts';
import { assembled, otherMetadata, ownedMetadata, ownedPart, partsOf } from './object-parts.ts';
import { type Applied, type Applier, applied } from './server-side-apply.ts';

export interface Write {
  manager: string;
  force: boolean;
  nowMs: number;
  /** For an object that is new. */
  uid: string;
}

const namespaceNameLabel = 'kubernetes.io/metadata.name';

/**
 * Applies to the main resource `live` (null: there is none). Returns `live` itself when nothing changes.
 * `resourceVersion` is the backend's to set. Throws VALIDATION_FAILED and FIELD_MANAGED.
 */
export function applyMain<K extends Kind>(kind: K, live: ObjectOf<K> | null, object: ApplyObject<K>, write: Write): ObjectOf<K> {
  const node = mergeSchema(kind);
  const config = pruneNulls(ownedPart(partsOf(object)), node);
  const liveParts = live === null ? null : partsOf(live);
  const applier: Applier = { manager: write.manager, subresource: undefined, force: write.force };
  const liveConfig = liveParts === null ? undefined : ownedPart(liveParts);
  const result = applied(liveConfig, config, node, readOwnerships(live?.metadata.managedFields), applier);

  const { name, namespace } = object.metadata;
  const value = isRecord(result.value) ? result.value : {};
  const owned = isRecord(value['metadata']) ? value['metadata'] : {};
  // With all fields given beside those that can be owned: an unknown field is refused anywhere.
  const admission = admit(kind, { ...object, ...value, metadata: { ...otherMetadata(object.metadata), ...owned } }, live ?? undefined);
  if (admission.causes !== undefined) throw invalidObject(kind, name, admission.causes);

  const { metadata: admitted, fields } = partsOf(admission.object);
  const metadata: ObjectMeta = {
    ...serverMetadata(live, write),
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...ownedMetadata(admitted),
  };
  refuseNewFinalizers(kind, live, metadata.finalizers ?? []);
  if (kind === 'Namespace') metadata.labels = { ...metadata.labels, [namespaceNameLabel]: name };
  if (liveParts !== null && canonicalJson(fields) !== canonicalJson(liveParts.fields)) metadata.generation++;
  const next = assembled(kind, kindPath(kind).apiVersion, metadata, { fields, status: liveParts?.status });
  return finished(live, next, result, applier, write.nowMs);
}

/** Applies to the status subresource of `live`; spec and metadata stay. See `applyMain`. */
export function applyStatus<K extends Kind>(kind: K, live: ObjectOf<K>, status: Record<string, unknown>, write: Write): ObjectOf<K> {
  if (kind === 'Namespace' || kind === 'Secret') throw new PosthornError('BAD_REQUEST', `${kind} has no status that can be applied`);
  const node = mergeSchema(kind);
  const parts = partsOf(live);
  const applier: Applier = { manager: write.manager, subresource: 'status', force: write.force };
  const config = pruneNulls({ status }, node);
  const result = applied({ status: parts.status }, config, node, readOwnerships(live.metadata.managedFields), applier);
  const value = isRecord(result.value) ? result.value['status'] : undefined;
  const admission = admitStatus(kind, value ?? {});
  if (admission.causes !== undefined) throw invalidObject(kind, live.metadata.name, admission.causes);
  const nextStatus = value === undefined ? undefined : admission.object;
  const next = assembled(kind, live.apiVersion, { ...live.metadata }, { fields: parts.fields, status: nextStatus });
  return finished(live, next, result, applier, write.nowMs);
}

/** The object with a pending deletion: it stays until its finalizers are gone. */
export function markedDeleted<K extends Kind>(live: ObjectOf<K>, nowMs: number): ObjectOf<K> {
  if (live.metadata.deletionTimestamp !== undefined) return live;
  const generation = live.metadata.generation + 1;
  return { ...live, metadata: { ...live.metadata, deletionTimestamp: rfc3339(nowMs), deletionGracePeriodSeconds: 0, generation } };
}

function finished<K extends Kind>(
  live: ObjectOf<K> | null,
  next: ObjectOf<K>,
  result: Applied,
  applier: Applier,
  nowMs: number,
): ObjectOf<K> {
  if (live !== null && !result.ownersChanged && canonicalJson(live) === canonicalJson(next)) return live;
  next.metadata.managedFields = writeOwnerships([
    ...result.others,
    {
      manager: applier.manager,
      operation: 'Apply',
      subresource: applier.subresource,
      apiVersion: next.apiVersion,
      time: rfc3339(nowMs),
      fields: result.fields,
    },
  ]);
  return next;
}

function serverMetadata(live: { metadata: ObjectMeta } | null, write: Write): ObjectMeta {
  if (live === null) return { name: '', uid: write.uid, resourceVersion: '', generation: 1, creationTimestamp: rfc3339(write.nowMs) };
  const { labels: _, annotations: __, finalizers: ___, ownerReferences: ____, ...rest } = live.metadata;
  return rest;
}

function refuseNewFinalizers(kind: Kind, live: { metadata: ObjectMeta } | null, finalizers: readonly string[]): void {
  if (live?.metadata.deletionTimestamp === undefined) return;
  const added = finalizers.filter((each) => live.metadata.finalizers?.includes(each) !== true);
  if (added.length === 0) return;
  const message = `no new finalizers can be added while the object is being deleted: ${added.join(', ')}`;
  throw invalidObject(kind, live.metadata.name, [{ field: 'metadata.finalizers', message }]);
}

/** RFC 3339 in UTC to the second, as metav1.Time. */
function rfc3339(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
