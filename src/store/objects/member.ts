import { type Kind, kindPath, type ObjectOf } from '../../resources/kinds.ts';
import type { Key } from '../store.ts';

/** Name of an object within its kind, sorted by namespace and then name. */
export function memberOf({ namespace, name }: Key): string {
  return `${namespace ?? ''}/${name}`;
}

export function keyOfMember(member: string): Key {
  const slash = member.indexOf('/');
  const name = member.slice(slash + 1);
  return slash === 0 ? { name } : { name, namespace: member.slice(0, slash) };
}

/** The object as lists and watches show it: Secrets without their contents. */
export function listed<K extends Kind>(object: ObjectOf<K>): ObjectOf<K> {
  if (object.kind !== 'Secret') return object;
  const { apiVersion, kind, metadata } = object;
  return { apiVersion, kind, metadata } as ObjectOf<K>;
}

/** The namespace that must exist for an object to be made; null for cluster-scoped kinds. */
export function requiredNamespace(kind: Kind, key: Key): string | null {
  return kindPath(kind).namespaced ? (key.namespace ?? '') : null;
}
