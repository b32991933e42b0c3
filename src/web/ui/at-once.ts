/** Does the work for each item, `atOnce` of them at a time, in their order. Rejects with what an item throws, or with the reason of `signal`. */
export async function forEachAtOnce<Item>(
  items: readonly Item[],
  work: (item: Item, index: number) => Promise<void>,
  { atOnce, signal }: { atOnce: number; signal: AbortSignal },
): Promise<void> {
  const entries = items.entries();
  const worker = async (): Promise<void> => {
    // The workers take from the same iterator.
    for (const [index, item] of entries) {
      signal.throwIfAborted();
      await work(item, index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
}
