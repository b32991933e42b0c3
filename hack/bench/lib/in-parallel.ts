/** So many at a time. */
export const concurrency = 32;

/** Runs it for 0, 1, … up to `count`. */
export async function inParallel(count: number, run: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let i = next++; i < count; i = next++) await run(i);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}
