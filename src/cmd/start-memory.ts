import { type EventLoopUtilization, performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from '../core/clock.ts';
import type { Readiness } from './readiness.ts';

/** How often a function must have run before Turbofan compiles it; in a busy process as Node has it. */
const runsBeforeTurbofan = { idle: 30_000, busy: 3000 };
/** What a process does first once it works belongs to its start. */
const settledAfterMs = 8000;
const lookEveryMs = 2000;
/** Share of the time in which the event loop of a process with work does something. */
const busy = 0.05;

/** The program is started with flags of Node (see the Dockerfile) that leave out compilers which only a process with work needs. */
export function compileAsUsual(): void {
  needRunsBeforeTurbofan('busy');
  setFlagsFromString('--sparkplug');
}

/** Compiles as usual from when the process has become ready, has settled and is busy for the first time. */
export async function compileWhenBusy(readiness: Readiness, clock: Clock): Promise<void> {
  await readiness.becameReady;
  const lookAgain = (before: EventLoopUtilization): void => {
    clock.after(lookEveryMs, () => {
      const now = performance.eventLoopUtilization();
      if (performance.eventLoopUtilization(now, before).utilization >= busy) compileAsUsual();
      else lookAgain(now);
    });
  };
  clock.after(settledAfterMs, () => {
    // What Maglev compiles from here keeps this number: it must not be much above the one of a busy process.
    needRunsBeforeTurbofan('idle');
    lookAgain(performance.eventLoopUtilization());
  });
}

function needRunsBeforeTurbofan(state: keyof typeof runsBeforeTurbofan): void {
  setFlagsFromString(`--invocation-count-for-turbofan=${runsBeforeTurbofan[state]}`);
}

/**
 * Gives back the memory that only starting needed, once the process is ready. Loading the program fills the young generation to its
 * limit, and V8 shrinks the heap of a process that does little only after a full collection, to which a process that does little
 * does not get for hours: a third of what it would hold.
 */
export async function releaseStartMemory(readiness: Readiness): Promise<void> {
  await readiness.becameReady;
  setFlagsFromString('--expose-gc');
  // Of a new context, because the globals of this one are there already.
  const collect: (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void = runInNewContext('gc');
  // The last resort also lets go of the code that ran only while starting.
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
