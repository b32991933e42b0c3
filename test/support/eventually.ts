import { setTimeout as sleep } from 'node:timers/promises';

/** Thrown by a check to stop the wait: what it waits for can no longer happen. */
export class StopWaiting extends Error {}

type Check<T> = () => T | Promise<T>;

/**
 * In a test, between two checks is as much time as the last one took: one that starts processes leaves the machine to what it waits for. A program that
 * measures by a wait sees its end at once.
 */
const pauseMs = { min: 20, max: process.env['JEST_WORKER_ID'] === undefined ? 20 : 500 };

/** Repeats `check` until it does not throw, and returns what it returned. Throws its last error, as it was, after `withinMs`. */
export function eventually<T>(check: Check<T>, withinMs?: number): Promise<T>;
/**
 * Repeats `check` until it returns something other than `undefined` and `false` without throwing, and returns that. After `withinMs` it throws an error that
 * names `what` and has the last error of the check as its cause.
 *
 * @example await eventually('the message to end', 30_000, async () => (await message()).status === 'delivered')
 */
export function eventually<T>(what: string, withinMs: number, check: Check<T>): Promise<Exclude<T, false | undefined>>;
export async function eventually<T>(
  ...args: [check: Check<T>, withinMs?: number] | [what: string, withinMs: number, check: Check<T>]
): Promise<T> {
  const [what, withinMs, check] = args.length === 3 ? args : [null, args[1] ?? 30_000, args[0]];
  const end = performance.now() + withinMs;
  for (;;) {
    let last: { error: unknown } | null = null;
    const begin = performance.now();
    try {
      const result = await check();
      if (what === null || (result !== undefined && result !== false)) return result;
    } catch (error) {
      if (error instanceof StopWaiting) throw error;
      last = { error };
    }
    const now = performance.now();
    if (now > end) throw failure(what, withinMs, last);
    await sleep(Math.min(Math.max(pauseMs.min, now - begin), pauseMs.max));
  }
}

function failure(what: string | null, withinMs: number, last: { error: unknown } | null): unknown {
  // The assertion's own error shows its line and its difference.
  if (what === null && last !== null) return last.error;
  const waited = `waited ${withinMs} ms for ${what}`;
  if (last === null) return new Error(waited);
  const { error } = last;
  return new Error(`${waited}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
}
