const maxKnown = 1000;
/** Longer names are not kept. */
const maxKnownLength = 64;

/** `judge`, with what it has said of names before. Senders choose names: at most 1000 are kept. */
export function ofKnownNames<T>(judge: (name: string) => T): (name: string) => T {
  const known = new Map<string, T>();
  return (name) => {
    const found = known.get(name);
    if (found !== undefined) return found;
    const result = judge(name);
    if (name.length > maxKnownLength) return result;
    if (known.size >= maxKnown) known.clear();
    known.set(name, result);
    return result;
  };
}
