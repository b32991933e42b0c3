import type { Clock } from '../../src/core/clock.ts';
import { systemClock } from '../../src/runtime/clock.ts';

/** The real time, in which everything that has a deadline gets so many times as long. Sleeps are as long as ever. */
export function patientBy(factor: number): Clock {
  return { ...systemClock, after: (ms, callback) => systemClock.after(factor * ms, callback) };
}

/** Whose deadlines a machine that stands still for a while does not reach. */
export const patientClock: Clock = patientBy(20);
