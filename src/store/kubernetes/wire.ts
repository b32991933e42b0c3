import { z } from 'zod';
import { PosthornError } from '../../core/errors.ts';
import { isRecord } from '../../resources/field-tree.ts';
import { type Kind, type KindPath, kindPath, type ObjectOf } from '../../resources/kinds.ts';
import { mergeSchema } from '../../resources/merge-schema.ts';
import { pruneNulls } from '../../resources/null-pruning.ts';
import type { ApplyObject, Key } from '../store.ts';

/** No object ever has it: etcd's first revision is taken when the store is made. An apply with it makes an object, or is CONFLICT. */
export const versionOfNothing = '1';

/** Path of a kind's objects: of one namespace, or of all. */
export function collectionPath(path: KindPath, namespace: string | undefined): string {
  const within = path.namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${path.root}${within}/${path.plural}`;
}

/** Path of one object. Throws BAD_REQUEST when the key has no namespace and the kind needs one, or the other way round. */
export function objectPath(path: KindPath, key: Key): string {
  if (path.namespaced !== (key.namespace !== undefined)) {
    throw new PosthornError('BAD_REQUEST', `${path.plural} ${path.namespaced ? 'need' : 'take no'} namespace`);
  }
  return `${collectionPath(path, key.namespace)}/${encodeURIComponent(key.name)}`;
}

/** The Accept header by which the API server leaves out all but metadata. */
export function metadataAccept(kind: 'PartialObjectMetadata' | 'PartialObjectMetadataList'): string {
  return `application/json;as=${kind};g=meta.k8s.io;v=v1`;
}

/**
 * The body of a server-side apply. `precondition` refuses when the object is another one or has changed. The API server drops nulls only from
 * what it makes; in what it changes they would be values of the wrong type.
 */
export function applyBody(object: ApplyObject, precondition: { uid?: string; resourceVersion?: string } = {}): Record<string, unknown> {
  const { metadata, spec, ...rest } = object;
  const pruned = pruneNulls({ spec }, mergeSchema(object.kind));
  return {
    ...rest,
    ...(isRecord(pruned) && pruned),
    apiVersion: kindPath(object.kind).apiVersion,
    metadata: { ...metadata, ...precondition },
  };
}

const identity = z.looseObject({
  metadata: z.looseObject({ name: z.string(), uid: z.string(), resourceVersion: z.string() }),
});

/**
 * An object as the API server sent it. Only its identity is checked: the rest has passed the CRD's schema there, and a
 * list has thousands of them. Items of lists and metadata-only objects get the kind that they lack.
 */
export function toObject<K extends Kind>(kind: K, value: unknown): ObjectOf<K> {
  const parsed = identity.safeParse(value);
  if (!parsed.success) throw new PosthornError('INTERNAL', `the API server sent something that is no ${kind}`, { cause: parsed.error });
  return Object.assign(value as object, { apiVersion: kindPath(kind).apiVersion, kind }) as ObjectOf<K>;
}
