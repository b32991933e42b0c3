import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';

/** A part of the program that must always run. */
export interface Component {
  name: string;
  /** Runs until the signal aborts, then ends. Ending or throwing before that is a crash. */
  run(signal: AbortSignal): Promise<void>;
}

const firstBackoffMs = 250;
const longestBackoffMs = 30_000;
/** A component that ran this long starts again without the backoff of earlier crashes. */
const steadyAfterMs = 60_000;

/** Runs the component until the signal aborts; after a crash again, with exponential, jittered backoff. */
export async function supervise(component: Component, options: { clock: Clock; logger: Logger; signal: AbortSignal }): Promise<void> {
  const { clock, logger, signal } = options;
  let crashes = 0;
  while (!signal.aborted) {
    const startedAtMs = clock.now();
    let reason: unknown = 'it ended';
    try {
      await component.run(signal);
    } catch (error) {
      reason = error instanceof Error ? error.message : error;
    }
    if (signal.aborted) return;
    crashes = clock.now() - startedAtMs >= steadyAfterMs ? 1 : crashes + 1;
    const backoffMs = Math.min(longestBackoffMs, firstBackoffMs * 2 ** Math.min(crashes - 1, 20)) * (0.8 + Math.random() * 0.4);
    logger.error({ component: component.name, reason, crashes, backoffMs: Math.round(backoffMs) }, 'a component stopped; restarting');
    await clock.sleep(backoffMs, signal);
  }
}
