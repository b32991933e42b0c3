import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from '../core/clock.ts';
import type { Readiness } from './readiness.ts';

/** How often a function of a starting process must have run before Turbofan compiles it; then as Node has it. */
const runsBeforeTurbofan = { starting: 1_000_000, started: 3000 };
/** What a process does first once it works belongs to its start. */
const settledAfterMs = 8000;

/**
 * Leaves out compilers that make code faster, until the process has started: what runs often until then are the functions that find and read
 * modules, and Turbofan alone is 5 MB of Node that no idle process needs in its memory.
 */
export function startWithoutCompilers(): void {
  setFlagsFromString(`--invocation-count-for-turbofan=${runsBeforeTurbofan.starting}`);
  setFlagsFromString('--no-sparkplug');
}

export function compileAsUsual(): void {
  setFlagsFromString('--sparkplug');
  setFlagsFromString(`--invocation-count-for-turbofan=${runsBeforeTurbofan.started}`);
}

/** Compiles as usual from some seconds after the process has become ready. */
export async function compileWhenStarted(readiness: Readiness, clock: Clock): Promise<void> {
  await readiness.becameReady;
  clock.after(settledAfterMs, compileAsUsual);
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
