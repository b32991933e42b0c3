import { type EventLoopUtilization, performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from '../core/clock.ts';
import type { Readiness } from './readiness.ts';

/** A longer start counts as work. */
const longStartMs = 5000;
/** At a process that has shown nothing yet, less often: that is nearly always. */
const lookEveryMs = { idle: 250, busy: 50 };
/**
 * A process has work when its event loop did something in this share of the time in so many checks; eight checks of an idle one make up for
 * one. Single jobs of an idle process do not count, work that comes in bursts does.
 */
const busy = { share: 0.05, looks: 4, forgottenPerIdleLook: 1 / 8 };

/** The program is started with flags of Node (see the Dockerfile) that leave its code to V8's interpreter. */
export function compileAsUsual(): void {
  for (const flag of ['--sparkplug', '--maglev-filter=*', '--turbo-filter=*']) setFlagsFromString(flag);
}

/** Compiles as usual from when the process is busy for the first time after it has become ready, or after 5 s of starting. */
export async function compileWhenBusy(readiness: Readiness, clock: Clock): Promise<void> {
  await Promise.race([readiness.becameReady, clock.sleep(longStartMs)]);
  const sampleAgain = (before: EventLoopUtilization, busyLooks: number): void => {
    clock.after(busyLooks > 0 ? lookEveryMs.busy : lookEveryMs.idle, () => {
      const now = performance.eventLoopUtilization();
      const isBusy = performance.eventLoopUtilization(now, before).utilization >= busy.share;
      const looks = isBusy ? busyLooks + 1 : Math.max(0, busyLooks - busy.forgottenPerIdleLook);
      if (looks >= busy.looks) compileAsUsual();
      else sampleAgain(now, looks);
    });
  };
  sampleAgain(performance.eventLoopUtilization(), 0);
}

/**
 * Gives back the memory that only starting needed, once the process is ready. Loading the program fills the young generation to its
 * limit, and V8 shrinks the heap of a process that does little only after a full collection, to which a process that does little
 * does not get for hours: a third of what it would hold.
 */
export async function releaseStartMemory(readiness: Readiness): Promise<void> {
  await readiness.becameReady;
  setFlagsFromString('--expose-gc');
  // The `gc` is that of a new context, because the globals of this one are there already.
  const collect: (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void = runInNewContext('gc');
  // The last resort also discards the code that ran only while starting.
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
