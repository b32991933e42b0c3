import { setTimeout as sleep } from 'node:timers/promises';

/** What is waited for will never come. */
export class Hopeless extends Error {}

/** Asks again and again until the answer is not undefined; throws `Hopeless` at once, and with the last error after the deadline. */
export async function waitUntil<T>(what: string, deadlineMs: number, ask: () => T | undefined | Promise<T | undefined>): Promise<T> {
  const deadline = AbortSignal.timeout(deadlineMs);
  let last: unknown;
  while (!deadline.aborted) {
    try {
      const answer = await ask();
      if (answer !== undefined) return answer;
    } catch (error) {
      if (error instanceof Hopeless) throw error;
      last = error;
    }
    await sleep(50);
  }
  throw new Error(`waited ${deadlineMs} ms for ${what}`, { cause: last });
}
