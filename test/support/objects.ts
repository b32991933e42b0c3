import { admit } from '../../src/resources/admission.ts';
import type { Kind, ObjectOf, PosthornKind, SpecInputOf } from '../../src/resources/kinds.ts';

const uid = '3f0e5a6c-7b1d-4c1e-9a53-0d4f2b6a8c7e';

/** An object as a store would answer it: defaults are set, the server's metadata is there and always the same. */
export function storedObject<K extends PosthornKind>(kind: K, name: string, spec: SpecInputOf<K>, namespace?: string): ObjectOf<K> {
  const { object, causes } = admit(kind as Kind, { kind, metadata: { name, ...(namespace === undefined ? {} : { namespace }) }, spec });
  if (object === undefined) throw new Error(JSON.stringify(causes));
  const metadata = { ...object.metadata, uid, resourceVersion: '7', generation: 3, creationTimestamp: '2026-01-02T03:04:05Z' };
  // `admit` has checked that it is an object of the kind.
  return { ...object, metadata } as ObjectOf<K>;
}
