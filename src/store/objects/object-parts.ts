import { isRecord } from '../../resources/field-tree.ts';
import type { Kind, ObjectOf } from '../../resources/kinds.ts';
import type { ObjectMeta } from '../../resources/metadata.ts';

/** The parts of an object that different rules hold for, whatever its kind. */
export interface Parts {
  metadata: Record<string, unknown>;
  status: unknown;
  /** All but apiVersion, kind, metadata and status: what `generation` counts the changes of. */
  fields: Record<string, unknown>;
}

/** Parts of an object, or of what somebody applied as one. */
export function partsOf(object: object): Parts {
  const { apiVersion: _, kind: __, metadata, status, ...fields } = object as Record<string, unknown>;
  return { metadata: isRecord(metadata) ? metadata : {}, status, fields };
}

const ownable = new Set(['labels', 'annotations', 'finalizers', 'ownerReferences']);

/** The metadata that field managers own. */
export function ownedMetadata(metadata: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(metadata).filter(([name, value]) => ownable.has(name) && value !== undefined));
}

/** The rest: the name, and what is the server's to set. */
export function otherMetadata(metadata: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(metadata).filter(([name]) => !ownable.has(name)));
}

/** The part of an object that server-side apply to the main resource is about. */
export function ownedPart({ metadata, fields }: Parts): Record<string, unknown> {
  const owned = ownedMetadata(metadata);
  return Object.keys(owned).length === 0 ? fields : { ...fields, metadata: owned };
}

/** The object that the parts make. They come from a stored object and from admission, so that they are one of the kind. */
export function assembled<K extends Kind>(kind: K, apiVersion: string, metadata: ObjectMeta, parts: Omit<Parts, 'metadata'>): ObjectOf<K> {
  const object = { apiVersion, kind, metadata, ...parts.fields, ...(parts.status === undefined ? {} : { status: parts.status }) };
  return object as unknown as ObjectOf<K>;
}
