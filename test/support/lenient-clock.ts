import type { Clock } from '../../src/core/clock.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';

/** The real time, in which everything that has a deadline gets so many times as long. Sleeps are as long as ever. */
export function lenientBy(factor: number): Clock {
  return { ...systemClock, after: (ms, callback) => systemClock.after(factor * ms, callback) };
}

/** The real time, but `now` is stopped: limits by time do not refill, and sleeps and deadlines are as long as ever. */
export function stoppedClock(): Clock {
  const nowMs = Date.now();
  return { ...systemClock, now: () => nowMs };
}

/** Has deadlines that a machine that is blocked for a while does not reach. */
export const lenientClock: Clock = lenientBy(20);
