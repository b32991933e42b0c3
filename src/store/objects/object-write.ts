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
import { type Ownership, readOwnerships, sameFields, writeOwnerships } from './managed-fields.ts';
import { type Applied, type Applier, applied } from './server-side-apply.ts';

export interface Write {
  manager: string;
  force: boolean;
  nowMs: number;
  /** For an object that is new. */
  uid: string;
}

/** The metadata that managers own; the rest is the server's. */
const ownedMetadata = ['labels', 'annotations', 'finalizers', 'ownerReferences'] as const;

/**
 * What an apply to the main resource makes of `live` (null: there is none). Returns `live` itself when nothing changes.
 * `resourceVersion` is the backend's to set. Throws VALIDATION_FAILED and FIELD_MANAGED.
 */
export function applyMain<K extends Kind>(kind: K, live: ObjectOf<K> | null, object: ApplyObject<K>, write: Write): ObjectOf<K> {
  const { metadata: given, ...fields } = withoutStatus(object);
  const node = mergeSchema(kind);
  const config = pruneNulls({ ...fields, kind: undefined, metadata: given }, node);
  const applier: Applier = { manager: write.manager, subresource: undefined, force: write.force };
  const result = applied(
    live === null ? undefined : configOf(live),
    ownedConfig(config),
    node,
    readOwnerships(live?.metadata.managedFields),
    applier,
  );

  const { name, namespace } = object.metadata;
  const value = isRecord(result.value) ? result.value : {};
  const metadata = { ...(isRecord(value['metadata']) ? value['metadata'] : {}), name, ...(namespace === undefined ? {} : { namespace }) };
  // What the applied object has beside the fields that can be owned is checked too: an unknown field is refused.
  const strict = { ...unowned(object), ...value, metadata: { ...unownedMetadata(object.metadata), ...metadata } };
  const admission = admit(kind, strict, live ?? undefined);
  if (admission.causes !== undefined) throw invalidObject(kind, name, admission.causes);
  const admitted: Record<string, unknown> & { metadata: Partial<ObjectMeta> } = admission.object;
  refuseNewFinalizers(kind, live, admitted.metadata.finalizers ?? []);

  const next = {
    ...admitted,
    apiVersion: kindPath(kind).apiVersion,
    kind,
    metadata: { ...serverMetadata(live, write), ...kept(admitted.metadata), name, ...(namespace === undefined ? {} : { namespace }) },
    ...statusOf(live),
  };
  if (kind === 'Namespace') next.metadata.labels = { ...next.metadata.labels, 'kubernetes.io/metadata.name': name };
  if (live !== null && canonicalJson(mainFields(next)) !== canonicalJson(mainFields(live))) next.metadata.generation++;
  return finished(live, next as unknown as ObjectOf<K>, result, applier, write);
}

/** What an apply to the status subresource makes of `live`; spec and metadata stay. See `applyMain`. */
export function applyStatus<K extends Kind>(kind: K, live: ObjectOf<K>, status: Record<string, unknown>, write: Write): ObjectOf<K> {
  if (kind === 'Namespace' || kind === 'Secret') throw new PosthornError('BAD_REQUEST', `${kind} has no status that can be applied`);
  const node = mergeSchema(kind);
  const applier: Applier = { manager: write.manager, subresource: 'status', force: write.force };
  const liveStatus = 'status' in live ? live.status : undefined;
  const result = applied({ status: liveStatus }, pruneNulls({ status }, node), node, readOwnerships(live.metadata.managedFields), applier);
  const value = isRecord(result.value) ? result.value['status'] : undefined;
  const admission = admitStatus(kind, value ?? {});
  if (admission.causes !== undefined) throw invalidObject(kind, live.metadata.name, admission.causes);
  const { status: _, ...rest } = live as ObjectOf<K> & { status?: unknown };
  const next = { ...rest, metadata: { ...live.metadata }, ...(value === undefined ? {} : { status: admission.object }) };
  return finished(live, next as unknown as ObjectOf<K>, result, applier, write);
}

/** The object with a deletion asked for: it stays until its finalizers are gone. */
export function markedDeleted<K extends Kind>(live: ObjectOf<K>, nowMs: number): ObjectOf<K> {
  if (live.metadata.deletionTimestamp !== undefined) return live;
  const metadata = {
    ...live.metadata,
    deletionTimestamp: rfc3339(nowMs),
    deletionGracePeriodSeconds: 0,
    generation: live.metadata.generation + 1,
  };
  return { ...live, metadata };
}

function finished<K extends Kind>(
  live: ObjectOf<K> | null,
  next: ObjectOf<K>,
  result: Applied,
  applier: Applier,
  write: Write,
): ObjectOf<K> {
  const before = readOwnerships(live?.metadata.managedFields);
  const own = before.find(
    (each) => each.operation === 'Apply' && each.manager === applier.manager && each.subresource === applier.subresource,
  );
  if (live !== null && sameContent(live, next) && sameFields(own?.fields ?? new Set(), result.fields) && unchanged(before, result.others))
    return live;
  const mine: Ownership = {
    manager: applier.manager,
    operation: 'Apply',
    subresource: applier.subresource,
    apiVersion: next.apiVersion,
    time: rfc3339(write.nowMs),
    fields: result.fields,
  };
  next.metadata.managedFields = writeOwnerships([...result.others, mine]);
  return next;
}

function unchanged(before: readonly Ownership[], others: readonly Ownership[]): boolean {
  const sizes = (all: readonly Ownership[]): string =>
    all.map((each) => `${each.operation}/${each.manager}/${each.subresource}/${each.fields.size}`).join();
  const same = before.filter((each) =>
    others.some((other) => other.manager === each.manager && other.operation === each.operation && other.subresource === each.subresource),
  );
  return sizes(same) === sizes(others);
}

function sameContent(a: { metadata: ObjectMeta }, b: { metadata: ObjectMeta }): boolean {
  const content = (object: { metadata: ObjectMeta }): string => {
    const { managedFields: _, resourceVersion: __, ...metadata } = object.metadata;
    return canonicalJson({ ...object, metadata });
  };
  return content(a) === content(b);
}

/** What counts for `generation`: everything but metadata and status. */
function mainFields(object: object): Record<string, unknown> {
  const { metadata: _, status: __, ...fields } = object as Record<string, unknown>;
  return fields;
}

function withoutStatus<K extends Kind>(object: ApplyObject<K>): ApplyObject<K> {
  const { status: _, ...rest } = object as ApplyObject<K> & { status?: unknown };
  return rest as ApplyObject<K>;
}

/** The part of a live object that appliers own. */
function configOf(live: { metadata: ObjectMeta }): Record<string, unknown> {
  const { apiVersion: _, kind: __, ...fields } = mainFields(live);
  return { ...fields, metadata: kept(live.metadata) };
}

/** The part of an applied object that becomes its manager's. */
function ownedConfig(config: unknown): Record<string, unknown> {
  if (!isRecord(config)) return {};
  const { apiVersion: _, kind: __, metadata, ...fields } = config;
  const owned = kept(isRecord(metadata) ? metadata : {});
  return Object.keys(owned).length === 0 ? fields : { ...fields, metadata: owned };
}

function unowned(object: ApplyObject): Record<string, unknown> {
  const { apiVersion, status } = object as ApplyObject & { apiVersion?: unknown; status?: unknown };
  return { ...(apiVersion === undefined ? {} : { apiVersion }), ...(status === undefined ? {} : { status }) };
}

function unownedMetadata(metadata: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(metadata).filter(([name]) => !(ownedMetadata as readonly string[]).includes(name)));
}

function kept(metadata: object): Record<string, unknown> & { labels?: Record<string, string> } {
  return Object.fromEntries(
    Object.entries(metadata).filter(([name, value]) => (ownedMetadata as readonly string[]).includes(name) && value !== undefined),
  );
}

function statusOf(live: object | null): { status?: unknown } {
  return live !== null && 'status' in live ? { status: live.status } : {};
}

function serverMetadata(live: { metadata: ObjectMeta } | null, write: Write): Omit<ObjectMeta, 'name'> {
  if (live === null) return { uid: write.uid, resourceVersion: '', generation: 1, creationTimestamp: rfc3339(write.nowMs) };
  return Object.fromEntries(
    Object.entries(live.metadata).filter(([name]) => !(ownedMetadata as readonly string[]).includes(name)),
  ) as unknown as Omit<ObjectMeta, 'name'>;
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
