import { jest } from '@jest/globals';
import fc from 'fast-check';

/** `POSTHORN_PROPERTY_SECONDS=300`: each property looks for so long, at other cases each time. Unset: at the same cases in every run. */
const wantedSeconds = process.env['POSTHORN_PROPERTY_SECONDS'];
const limitMs = wantedSeconds === undefined ? 60_000 : Number(wantedSeconds) * 1000;
if (wantedSeconds !== undefined) jest.setTimeout(limitMs + 60_000);

/**
 * Asserts a property for `runs` cases, or for as many as a minute allows on a slow machine; a failure is told within it, too, with the
 * smallest case found by then. So a test needs no timeout of its own.
 */
export function assertProperty(property: fc.IProperty<unknown>, runs?: number): void;
export function assertProperty(property: fc.IAsyncProperty<unknown>, runs?: number): Promise<void>;
export function assertProperty(property: fc.IRawProperty<unknown>, runs = 100): Promise<void> | void {
  const plugins = [fc.interruptAfterTimeLimit(limitMs)];
  if (wantedSeconds === undefined) return fc.assert(property, { plugins, numRuns: runs, seed: 20_261_122 });
  return fc.assert(property, { plugins, numRuns: property.isAsync() ? Number.MAX_SAFE_INTEGER : runs * 100 });
}
