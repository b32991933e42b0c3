import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { FencedPublisher } from './fenced-publisher.ts';

export interface StoreIdWatchOptions {
  publisher: Pick<FencedPublisher, 'marker'>;
  /** As it was before anything was published. */
  known: string;
  clock: Clock;
  logger: Logger;
  /** Redis has another marker than before: what was published is gone. */
  onDataLoss(): void;
}

const intervalMs = 5000;

/** Checks the store id every five seconds until the signal aborts; an outage of Redis is retried. */
export async function watchStoreId(options: StoreIdWatchOptions, signal: AbortSignal): Promise<void> {
  const { publisher, clock, logger, onDataLoss } = options;
  let { known } = options;
  while (!signal.aborted) {
    try {
      const marker = await publisher.marker();
      if (known !== marker) {
        logger.warn({}, 'Redis has lost its data; the leader publishes all records again');
        onDataLoss();
      }
      known = marker;
    } catch (error) {
      logger.debug({ err: error }, 'the store id could not be read');
    }
    await clock.sleep(intervalMs * (0.8 + 0.4 * Math.random()), signal);
  }
}
