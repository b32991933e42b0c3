import { isPosthornError } from '../../core/errors.ts';
import type { ObjectOf } from '../../resources/kinds.ts';
import { entityTag, hasChanged, requireVersion } from '../http/entity-tags.ts';
import type { Call } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { findToRead, getByName } from './lookup.ts';
import { nouns } from './nouns.ts';

/** The entity tag of a custom resource. It is another one after a change of the spec; the status has none. */
export function objectTag({ metadata: { uid, generation } }: { metadata: { uid: string; generation: number } }): string {
  return entityTag(uid, generation);
}

/** As `findToRead`; the answer has its version. */
export async function findVersioned<K extends ServedKind>(call: Call, kind: K, idOrSlug: string): Promise<ObjectOf<K>> {
  const object = await findToRead(call, kind, idOrSlug);
  call.setEntityTag(objectTag(object));
  return object;
}

/** Reads the objects again. PRECONDITION_FAILED when one of them has another version than the request is about. */
export async function requireVersions<K extends ServedKind>(call: Call, objects: readonly ObjectOf<K>[]): Promise<void> {
  if (call.ifMatch === null) return;
  for (const { kind, metadata } of objects) {
    const current = await getByName(call, kind, metadata.name);
    if (current?.metadata.uid === metadata.uid) requireVersion(call, nouns[kind], objectTag(current));
  }
}

/** Records in Redis count their changes. */
interface Revised {
  revision: number;
}

/** The answer has the version of the record. */
export function tagged<T extends Revised>(call: Pick<Call, 'setEntityTag'>, record: T): T {
  call.setEntityTag(entityTag(record.revision));
  return record;
}

/** Makes a change with the revision that the request expects, if it does; the answer has the version after it. */
export async function changeVersioned<T extends Revised>(
  call: Pick<Call, 'ifMatch' | 'setEntityTag'>,
  noun: string,
  current: T,
  change: (expectedRevision: number | undefined) => Promise<T>,
): Promise<T> {
  return tagged(call, await atVersion(call, noun, current, change));
}

/** Changes or deletes a record at the revision that the request expects, if it does. PRECONDITION_FAILED when it has another one. */
export async function atVersion<T>(
  call: Pick<Call, 'ifMatch'>,
  noun: string,
  current: Revised,
  act: (expectedRevision: number | undefined) => Promise<T>,
): Promise<T> {
  requireVersion(call, noun, entityTag(current.revision));
  const expected = call.ifMatch === null ? undefined : current.revision;
  try {
    return await act(expected);
  } catch (error) {
    // Every other conflict has details.
    if (expected !== undefined && isPosthornError(error, 'CONFLICT') && error.details === undefined) throw hasChanged(noun, error);
    throw error;
  }
}
