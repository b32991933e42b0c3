import { withJitter } from '../../core/backoff.ts';
import type { Logger } from '../../core/logger.ts';

const firstDelayMs = 100;
const longestDelayMs = 2000;

/** The loops of one worker that talk to Redis. What all of them meet at the same time is said once. */
export class RedisTroubles {
  readonly #logger: Logger;
  #troubled = 0;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** For one loop, or for those of one shard. */
  watch(): RedisTrouble {
    return new RedisTrouble({
      began: (error) => {
        if (this.#troubled++ > 0) return;
        const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
        // The error itself is not logged: it holds the command and with it payloads.
        this.#logger.error(
          { reason: cause instanceof Error ? cause.message : String(cause) },
          'Redis is unreachable; delivery is suspended',
        );
      },
      ended: () => {
        if (--this.#troubled === 0) this.#logger.info({}, 'Redis is reachable again; delivery resumes');
      },
    });
  }
}

/** Whether Redis answers, and how long to wait before the next try. */
export class RedisTrouble {
  readonly #told: { began: (error: unknown) => void; ended: () => void };
  #failures = 0;

  constructor(told: { began: (error: unknown) => void; ended: () => void }) {
    this.#told = told;
  }

  /** Answers whether there was trouble until now. */
  over(): boolean {
    const was = this.#failures > 0;
    this.#failures = 0;
    if (was) this.#told.ended();
    return was;
  }

  /** Milliseconds to wait. */
  met(error: unknown): number {
    if (this.#failures === 0) this.#told.began(error);
    this.#failures++;
    return withJitter(Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(this.#failures - 1, 10)));
  }
}
