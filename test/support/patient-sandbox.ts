import { systemClock } from '../../src/runtime/clock.ts';
import { Sandbox } from '../../src/sandbox/sandbox.ts';

/** A sandbox whose deadlines a machine that stands still for a while does not reach: what takes too long is refused for good. */
export function patientSandbox(): Sandbox {
  return new Sandbox({ clock: { ...systemClock, after: (ms, callback) => systemClock.after(20 * ms, callback) }, processes: 1 });
}
