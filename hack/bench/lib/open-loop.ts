import { setTimeout as sleep } from 'node:timers/promises';

/** Begins work `perSecond` times a second, each at its time, independent of the others; resolves when all is done. `begin` gets its intended time. */
export async function openLoop(perSecond: number, seconds: number, begin: (atMs: number) => Promise<void>): Promise<void> {
  const begunMs = performance.now();
  const underWay: Promise<void>[] = [];
  for (let i = 0; i < perSecond * seconds; i++) {
    const at = begunMs + (i * 1000) / perSecond;
    const waitMs = at - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    underWay.push(begin(at));
  }
  await Promise.all(underWay);
}
