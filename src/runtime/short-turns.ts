/** Work of all controllers within one turn of the event loop, in milliseconds. */
const turnMs = 10;
let beganMs: number | null = null;

/**
 * To be awaited, until it returns null, before each piece of work: null while the turn of the event loop has not lasted for long. A reconcile that finds
 * everything in the caches waits for nothing; thousands of them would otherwise be one turn, in which neither the lease is renewed nor a watch read.
 */
export function restOfTurn(): Promise<void> | null {
  const nowMs = performance.now();
  if (beganMs === null) {
    beganMs = nowMs;
    setImmediate(() => {
      beganMs = null;
    });
  }
  return nowMs - beganMs < turnMs ? null : new Promise((resolve) => void setImmediate(resolve));
}
