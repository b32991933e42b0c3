import type { Clock } from '../core/clock.ts';

/** Longest delay that setTimeout takes; a longer one would fire after 1 ms. */
const longestTimeoutMs = 2 ** 31 - 1;

function after(ms: number, callback: () => void): () => void {
  let timer: NodeJS.Timeout;
  const arm = (leftMs: number): void => {
    const stepMs = Math.min(Math.max(0, leftMs), longestTimeoutMs);
    timer = setTimeout(() => (leftMs > stepMs ? arm(leftMs - stepMs) : callback()), stepMs);
  };
  arm(ms);
  return () => clearTimeout(timer);
}

/** The real time. Its timers keep the process alive until they fire or are cancelled. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after,
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      const cancel = after(ms, () => {
        signal?.removeEventListener('abort', abort);
        resolve();
      });
      const abort = (): void => {
        cancel();
        resolve();
      };
      signal?.addEventListener('abort', abort, { once: true });
    }),
};
