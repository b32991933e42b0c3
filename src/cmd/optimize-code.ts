import { setFlagsFromString } from 'node:v8';
import type { Clock } from '../core/clock.ts';

/** What runs while a process starts runs a few times. A start that takes longer has much to read. */
const startMs = 10_000;
const lookEveryMs = 250;
/** By the part of the time in which the event loop has something to do: a process at rest is at 0.01. */
const busyFrom = 0.1;
/** A collection of garbage fills one look, and ends in the next. */
const busyLooks = 3;

/** V8's compilers behind its interpreter, on or off. To run them makes 9 MB of Node resident, in which a process at rest has no use. */
export function optimizeCode(isWanted: boolean): void {
  for (const compiler of ['sparkplug', 'maglev', 'opt']) setFlagsFromString(isWanted ? `--${compiler}` : `--no-${compiler}`);
}

/** Resolves when a process that is `ready`, or has taken long to be, has been busy for a while. `utilization`: milliseconds so far. */
export async function becameBusy(
  ready: Promise<void>,
  { clock, utilization }: { clock: Clock; utilization: () => { idle: number; active: number } },
): Promise<void> {
  await Promise.race([ready, clock.sleep(startMs)]);
  let last = utilization();
  for (let looks = 0; looks < busyLooks; ) {
    await clock.sleep(lookEveryMs);
    const now = utilization();
    const active = now.active - last.active;
    looks = active > busyFrom * (active + now.idle - last.idle) ? looks + 1 : 0;
    last = now;
  }
}
