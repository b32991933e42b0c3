import type { IncomingMessage, ServerResponse } from 'node:http';
import { isPosthornError, PosthornError } from '../core/errors.ts';
import { requestIdFor } from '../core/request-id.ts';
import { requireOwnStore } from '../data/registry/store-installation.ts';
import { answerError } from '../ingest/answer.ts';
import { lastingComplaint } from './lasting-complaint.ts';
import type { RedisLink } from './redis-link.ts';
import type { RoleContext } from './role-process.ts';

const retryMs = 1000;
/** Another Redis may stand behind the address at every connect, and the controllers claim a new one only when they start. */
const lookMs = 5000;

/**
 * Whether Redis holds the data of the installation that the process is of. While it holds that of another one the process is not ready (check
 * `installation`), and the log says why once.
 */
export class OwnStore {
  readonly #link: RedisLink;
  readonly #context: RoleContext;
  readonly #judge: (found: string | null) => void;
  #isJudged = false;
  #refusal: PosthornError | null = null;

  constructor(link: RedisLink, context: RoleContext) {
    this.#link = link;
    this.#context = context;
    const message = 'Redis holds the data of another installation; this process does not work with it';
    this.#judge = lastingComplaint(context, { check: 'installation', message });
  }

  /** INVALID_CONFIG while it is another's. */
  get refusal(): PosthornError | null {
    return this.#refusal;
  }

  /** False until Redis has answered for the first time. */
  get isOwn(): boolean {
    return this.#isJudged && this.#refusal === null;
  }

  /** Waits until it is the installation's own, or the process is to stop; looks again every 5 seconds after that. */
  async untilOwn(): Promise<void> {
    const { clock, stopping } = this.#context;
    while (!stopping.aborted) {
      await this.#look();
      if (this.isOwn) break;
      await clock.sleep(retryMs, stopping);
    }
    void this.#watch();
  }

  async #watch(): Promise<void> {
    const { clock, stopping } = this.#context;
    while (!stopping.aborted) {
      await clock.sleep(lookMs, stopping);
      await this.#look();
    }
  }

  async #look(): Promise<void> {
    const { config, logger, readiness, stopping } = this.#context;
    try {
      await requireOwnStore({ redis: this.#link.main, prefix: config.redisKeyPrefix }, config.installation);
      this.#refusal = null;
    } catch (error) {
      if (stopping.aborted) return;
      if (!isPosthornError(error, 'INVALID_CONFIG')) {
        // That Redis does not answer is told by the connection.
        logger.debug({ err: error }, 'whose the data in Redis is cannot be read');
        return;
      }
      this.#refusal = error;
    }
    if (!this.#isJudged && this.#refusal === null) readiness.set('installation', { ok: true });
    this.#isJudged = true;
    this.#judge(this.#refusal?.message ?? null);
  }
}

/** Answers 503 in place of a role that must not touch what is in Redis. */
export function answerForeign(request: IncomingMessage, response: ServerResponse): void {
  const error = new PosthornError('UNAVAILABLE', 'This server is not connected to the Redis of its installation.', {
    retryAfterSeconds: retryMs / 1000,
  });
  answerError(response, requestIdFor(request.headers['x-request-id']), error);
}
