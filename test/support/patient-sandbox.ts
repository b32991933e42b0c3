import { Sandbox } from '../../src/sandbox/sandbox.ts';
import { patientClock } from './patient-clock.ts';

/** A sandbox whose deadlines a machine that is blocked for a while does not reach: what takes too long is refused for good. */
export function patientSandbox(): Sandbox {
  return new Sandbox({ clock: patientClock, processes: 1 });
}
