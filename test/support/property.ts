import { jest } from '@jest/globals';
import fc from 'fast-check';

/** `POSTHORN_PROPERTY_SECONDS=300`: each property runs for so long, at other cases each time. Unset: at the same cases in every run. */
const wantedSeconds = process.env['POSTHORN_PROPERTY_SECONDS'];
const limitMs = wantedSeconds === undefined ? 60_000 : Number(wantedSeconds) * 1000;
if (wantedSeconds !== undefined) jest.setTimeout(limitMs + 60_000);

/** A machine that is loaded eightfold makes as many. */
const leastShare = 0.1;

/**
 * Asserts a property for `runs` cases, or for as many as begin within a minute (`withinMs`) on a slow machine, but a tenth of them at least; a failure is
 * reported after it, too, with the smallest case found by then. So a test needs no timeout of its own. No case is under way when it returns: cases of a suite
 * share its Redis.
 */
export function assertProperty(property: fc.IProperty<unknown>, runs?: number, withinMs?: number): void;
export function assertProperty(property: fc.IAsyncProperty<unknown>, runs?: number, withinMs?: number): Promise<void>;
export function assertProperty(property: fc.IRawProperty<unknown>, runs = 100, withinMs = limitMs): Promise<void> | void {
  const plugins = [endAfter(withinMs)];
  if (wantedSeconds === undefined) {
    const reporter = (details: fc.RunDetails<unknown>): void => requireRuns(details, Math.ceil(runs * leastShare));
    return fc.assert(property, { plugins, numRuns: runs, seed: 20_261_122, reporter });
  }
  return fc.assert(property, { plugins, numRuns: property.isAsync() ? Number.MAX_SAFE_INTEGER : runs * 100 });
}

/** Begins no case after the time. `fc.interruptAfterTimeLimit` does not wait for the case that is under way then. */
function endAfter(ms: number): fc.Plugin<unknown> {
  return () => {
    const endMs = performance.now() + ms;
    return { decorateRun: (run) => (value) => (performance.now() < endMs ? run(value) : new fc.PreconditionFailure(true)) };
  };
}

function requireRuns(details: fc.RunDetails<unknown>, least: number): void {
  if (details.failed) throw new Error(fc.defaultReportMessage(details), { cause: details.errorInstance });
  if (details.numRuns < least)
    throw new Error(`the property held for ${details.numRuns} cases and then there was no more time: too few, ${least} are the least`);
}
