import type { Clock } from '../../core/clock.ts';

const pollMs = 100;

/** Resolves when all caches are filled, or the signal has aborted. */
export async function untilFilled(caches: readonly { readonly isFilled: boolean }[], clock: Clock, signal: AbortSignal): Promise<void> {
  while (!caches.every(({ isFilled }) => isFilled) && !signal.aborted) await clock.sleep(pollMs, signal);
}
