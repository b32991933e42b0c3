import { expect } from '@jest/globals';

/** Milliseconds of processor time that `run` takes on this thread: unlike time on the clock, other programs do not lengthen it. */
export function cpuMs(run: () => void): number {
  const before = process.threadCpuUsage();
  run();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

/** What `run` returns; fails when it takes more processor time than half a second. */
export function soon<T>(run: () => T): T {
  const results: T[] = [];
  expect(cpuMs(() => void results.push(run()))).toBeLessThan(500);
  return results[0] as T;
}
