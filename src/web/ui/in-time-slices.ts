const sliceMs = 8;

export interface SliceOptions {
  /** Called between two slices with what the work yields. */
  onProgress?: (at: number) => void;
  signal?: AbortSignal;
}

/** Does long work in slices of 8 ms, so that the page can respond between them. Throws the reason of `signal`. */
export async function inTimeSlices<Result>(work: Generator<number, Result>, { onProgress, signal }: SliceOptions = {}): Promise<Result> {
  for (;;) {
    const until = performance.now() + sliceMs;
    for (;;) {
      const { done, value } = work.next();
      if (done === true) return value;
      if (performance.now() < until) continue;
      onProgress?.(value);
      break;
    }
    await new Promise((resolve) => setTimeout(resolve));
    signal?.throwIfAborted();
  }
}
