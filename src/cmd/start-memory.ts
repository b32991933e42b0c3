import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Readiness } from './readiness.ts';

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
