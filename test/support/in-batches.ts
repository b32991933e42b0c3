const atOnce = 50;

/** Does something `count` times, at most 50 at a time: what waits behind a thousand others comes too late on a busy machine. */
export async function inBatches<T>(count: number, work: (index: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  while (results.length < count) {
    const first = results.length;
    const size = Math.min(atOnce, count - first);
    results.push(...(await Promise.all(Array.from({ length: size }, (_, i) => work(first + i)))));
  }
  return results;
}
