const maxKnown = 1000;
/** Longer names are not kept. */
const maxKnownLength = 64;

/** Caches the results of `compute` by name, for the hot path. Senders choose the names, so the cache is cleared at 1000 entries. */
export function ofKnownNames<T extends string | boolean>(compute: (name: string) => T): (name: string) => T {
  const known = new Map<string, T>();
  return (name) => {
    const found = known.get(name);
    if (found !== undefined) return found;
    const verdict = compute(name);
    if (name.length > maxKnownLength) return verdict;
    if (known.size >= maxKnown) known.clear();
    known.set(name, verdict);
    return verdict;
  };
}
