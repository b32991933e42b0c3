import { setTimeout as sleep } from 'node:timers/promises';

/** Waits for the next period of the real time when this one ends soon: a test does not reach from one into the other. */
export async function waitForPeriodStart(periodMs: number, soonMs = 20_000): Promise<void> {
  const leftMs = periodMs - (Date.now() % periodMs);
  if (leftMs < soonMs) await sleep(leftMs + 1);
}
