import type { Key } from '../store/store.ts';

/** `namespace/name`, or `name` alone for cluster-scoped kinds; names hold no slash. */
export function formatKey({ namespace, name }: Key): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

export function parseKey(text: string): Key {
  const slash = text.indexOf('/');
  return slash === -1 ? { name: text } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
}
