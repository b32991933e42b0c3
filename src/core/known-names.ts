import { LRUCache } from 'lru-cache';

/** Longer names are not kept. */
const longestKnown = 64;

/** `judge`, which keeps its verdicts. Senders choose names: it keeps those of the 1000 names that were asked for last. */
export function ofKnownNames<T extends string | boolean>(judge: (name: string) => T): (name: string) => T {
  const known = new LRUCache<string, T>({ max: 1000, memoMethod: (name) => judge(name) });
  return (name) => (name.length > longestKnown ? judge(name) : known.memo(name));
}
