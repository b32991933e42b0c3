import { Sandbox } from '../../src/sandbox/sandbox.ts';
import { lenientClock } from './lenient-clock.ts';

/** A sandbox whose deadlines a machine that is blocked for a while does not reach: what takes too long is refused for good. */
export function lenientSandbox(): Sandbox {
  return new Sandbox({ clock: lenientClock, processes: 1 });
}
