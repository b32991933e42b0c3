import { withJitter } from '../../core/backoff.ts';
import type { Logger } from '../../core/logger.ts';

const firstDelayMs = 100;
const longestDelayMs = 2000;

/** Back-off of all loops of one worker that use Redis. An outage that they see at the same time is logged once. */
export class RedisBackoffs {
  readonly #logger: Logger;
  #troubled = 0;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Returns the backoff of one loop, or of the loops of one shard. */
  watch(): RedisBackoff {
    return new RedisBackoff({
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

/** Back-off of one loop: whether Redis replies, and how long to wait before the next try. */
export class RedisBackoff {
  readonly #told: { began: (error: unknown) => void; ended: () => void };
  #failures = 0;

  constructor(told: { began: (error: unknown) => void; ended: () => void }) {
    this.#told = told;
  }

  /** Returns whether the calls before had failed. */
  recordSuccess(): boolean {
    const was = this.#failures > 0;
    this.#failures = 0;
    if (was) this.#told.ended();
    return was;
  }

  /** Returns the delay before the next try, in ms. */
  recordFailure(error: unknown): number {
    if (this.#failures === 0) this.#told.began(error);
    this.#failures++;
    return withJitter(Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(this.#failures - 1, 10)));
  }
}
