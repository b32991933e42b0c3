import { setTimeout as sleep } from 'node:timers/promises';

/** Runs the check until it does not throw; throws its last error after `withinMs`. */
export async function passes<T>(check: () => Promise<T> | T, withinMs = 30_000): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > end) throw error;
    }
    await sleep(20);
  }
}
