import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { FencedPublisher } from './fenced-publisher.ts';

export interface FirstPassOptions {
  queues: readonly { readonly isIdle: boolean }[];
  publisher: Pick<FencedPublisher, 'markComplete'>;
  clock: Clock;
  logger: Logger;
}

const lookEveryMs = 100;

/**
 * Notifies the readers of the registry when everything has been published once: each object has been reconciled, or has failed
 * and waits for its next try.
 */
export class FirstPass {
  readonly #options: FirstPassOptions;
  #isUnderWay = false;

  constructor(options: FirstPassOptions) {
    this.#options = options;
  }

  /** Everything has just been put into the queues. */
  begin(): void {
    this.#isUnderWay = true;
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { queues, publisher, clock, logger } = this.#options;
    while (!signal.aborted) {
      await clock.sleep(lookEveryMs, signal);
      if (!this.#isUnderWay || signal.aborted || queues.some(({ isIdle }) => !isIdle)) continue;
      try {
        await publisher.markComplete();
        this.#isUnderWay = false;
      } catch (error) {
        logger.debug({ err: error }, 'the end of the first publication could not be recorded; retrying');
      }
    }
  }
}
