import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import { supervise } from '../runtime/supervisor.ts';
import type { OpenedStore } from './resource-store.ts';

const intervalMs = 600_000;

/** Finishes deletions that a process which died left half done, until the signal aborts. */
export async function sweepStore(
  { sweep }: Pick<OpenedStore, 'sweep'>,
  { clock, logger }: { clock: Clock; logger: Logger },
  signal: AbortSignal,
): Promise<void> {
  if (sweep === null) return;
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      await sweep(signal);
      await clock.sleep(intervalMs, signal);
    }
  };
  await supervise({ name: 'store-sweep', run }, { clock, logger, signal });
}
