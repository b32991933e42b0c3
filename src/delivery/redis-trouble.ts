import { withJitter } from '../core/backoff.ts';
import type { Logger } from '../core/logger.ts';

const firstDelayMs = 100;
const longestDelayMs = 2000;

/** Whether Redis answers, said once per change, and how long to wait before the next try. */
export class RedisTrouble {
  readonly #logger: Logger;
  #failures = 0;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  get isThere(): boolean {
    return this.#failures > 0;
  }

  /** Answers whether there was trouble until now. */
  over(): boolean {
    const was = this.isThere;
    if (was) this.#logger.info({ failures: this.#failures }, 'Redis answers again; delivery goes on');
    this.#failures = 0;
    return was;
  }

  /** Milliseconds to wait. The error itself is not logged: it holds the command and with it payloads. */
  met(error: unknown): number {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    if (!this.isThere)
      this.#logger.error(
        { reason: cause instanceof Error ? cause.message : String(cause) },
        'Redis does not answer; delivery waits for it',
      );
    this.#failures++;
    return withJitter(Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(this.#failures - 1, 10)));
  }
}
