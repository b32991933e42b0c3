const maxKnown = 1000;
/** Longer names are not kept. */
const maxKnownLength = 64;

/** `judge`, which keeps its verdicts, for the hot path. Senders choose names: of more than 1000 all are forgotten, and judged again. */
export function ofKnownNames<T extends string | boolean>(judge: (name: string) => T): (name: string) => T {
  const known = new Map<string, T>();
  return (name) => {
    const found = known.get(name);
    if (found !== undefined) return found;
    const verdict = judge(name);
    if (name.length > maxKnownLength) return verdict;
    if (known.size >= maxKnown) known.clear();
    known.set(name, verdict);
    return verdict;
  };
}
