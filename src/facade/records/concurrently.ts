const atOnce = 16;

/** Results of `run` for each item, in their order; a few run at a time. After an error no further one begins, and it rejects once those under way have ended. */
export async function mapConcurrently<T, R>(items: readonly T[], run: (item: T, index: number) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const rest = items.entries();
  let hasFailed = false;
  const worker = async (): Promise<void> => {
    for (const [index, item] of rest) {
      if (hasFailed) return;
      try {
        results[index] = await run(item, index);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  for (const each of ended) if (each.status === 'rejected') throw each.reason;
  return results;
}
