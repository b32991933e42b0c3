import { Fifo } from '../core/fifo.ts';

/** Work of all controllers within one turn of the event loop, in milliseconds. */
const turnMs = 10;
let beganMs: number | null = null;
/** Each has a `releaseNext` that will run. */
const waiting = new Fifo<() => void>();

/**
 * To be awaited, if it is not null, before each piece of work. A reconcile that finds everything in the caches waits for nothing; thousands of them would
 * otherwise be one turn, in which neither the lease is renewed nor a watch read. Those that wait are served in the order in which they came: a caller
 * stands behind them, so that a controller with thousands of objects does not hold up the others.
 */
export function reconcileTurn(): Promise<void> | null {
  const isOver = turnIsOver();
  if (!isOver && waiting.size === 0) return null;
  return new Promise((resume) => {
    waiting.push(resume);
    if (isOver) setImmediate(releaseNext);
    else waiting.shift()?.();
  });
}

function releaseNext(): void {
  if (turnIsOver()) setImmediate(releaseNext);
  else waiting.shift()?.();
}

function turnIsOver(): boolean {
  const nowMs = performance.now();
  if (beganMs === null) {
    beganMs = nowMs;
    setImmediate(() => {
      beganMs = null;
    });
  }
  return nowMs - beganMs >= turnMs;
}
