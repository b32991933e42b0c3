import type { IncomingMessage, ServerResponse } from 'node:http';
import { isPosthornError, PosthornError } from '../core/errors.ts';
import { requestIdFor } from '../core/request-id.ts';
import { claimKeys, claimStore, requireOwnStore } from '../data/registry/store-installation.ts';
import { answerError } from '../ingest/answer.ts';
import type { ConnectionCheck } from '../redis/connection-gate.ts';
import type { Config } from './config.ts';
import { readinessReporter } from './readiness-reporter.ts';
import type { RedisLink } from './redis-link.ts';
import type { RoleContext } from './role-process.ts';
import { startUpQuery } from './start-up-query.ts';

const retryMs = 1000;
/** Also without a new connection the data may become another's, as of a backup that is restored. */
const lookMs = 5000;

/**
 * What each connection to Redis must pass: that the data there is of the installation that the process is of, or of none yet. `claims`: data of none
 * becomes that of the installation.
 */
export function ownStoreCheck({ redisKeyPrefix: prefix, installation }: Config, { claims }: { claims: boolean }): ConnectionCheck {
  const confirm = claims ? claimStore : requireOwnStore;
  return { keys: claimKeys(prefix), ask: (redis) => confirm({ redis, prefix }, installation) };
}

/**
 * Whether Redis holds the data of the installation that the process is of. While it holds that of another one the process is not ready (check
 * `installation`), and the reason is logged once.
 */
export class OwnStore {
  readonly #link: RedisLink;
  readonly #context: RoleContext;
  readonly #check: ConnectionCheck;
  readonly #report: (found: string | null) => void;
  readonly #refused = new AbortController();
  #isChecked = false;
  #refusal: PosthornError | null = null;

  /** `check`: that of the link. */
  constructor(link: RedisLink, context: RoleContext, check: ConnectionCheck) {
    this.#link = link;
    this.#context = context;
    this.#check = check;
    const message = 'Redis holds the data of another installation; this process does not work with it';
    this.#report = readinessReporter(context, { check: 'installation', message });
  }

  /** INVALID_CONFIG while it is another's. */
  get refusal(): PosthornError | null {
    return this.#refusal;
  }

  /** Aborts with the refusal once it is another's, for good. */
  get refused(): AbortSignal {
    return this.#refused.signal;
  }

  /** False until Redis has replied for the first time. */
  get isOwn(): boolean {
    return this.#isChecked && this.#refusal === null;
  }

  /** Waits until it is the installation's own, or the process is to stop; retries every 5 seconds after that. */
  async untilOwn(): Promise<void> {
    const { clock, stopping } = this.#context;
    while (!stopping.aborted) {
      await this.#compare();
      if (this.isOwn) break;
      await clock.sleep(retryMs, stopping);
    }
    void this.#watch();
  }

  /** Waits until Redis has replied, or the process is to stop; checks again as `untilOwn` does. Throws INVALID_CONFIG when it is another's. */
  async requireOwn(): Promise<void> {
    await startUpQuery(this.#context, 'whose the data is', () => this.#check.ask(this.#link.main));
    void this.#watch();
  }

  async #watch(): Promise<void> {
    const { clock, stopping } = this.#context;
    // The address may lead to another Redis at every connect.
    this.#link.main.on('ready', () => void this.#compare());
    while (!stopping.aborted) {
      await clock.sleep(lookMs, stopping);
      await this.#compare();
    }
  }

  async #compare(): Promise<void> {
    const { logger, readiness, stopping } = this.#context;
    try {
      await this.#check.ask(this.#link.main);
      this.#refusal = null;
    } catch (error) {
      if (stopping.aborted) return;
      if (!isPosthornError(error, 'INVALID_CONFIG')) {
        // The connection reports that Redis does not answer.
        logger.debug({ err: error }, 'the owner of the data in Redis cannot be read');
        return;
      }
      this.#refusal = error;
      this.#link.doubt();
      this.#refused.abort(error);
    }
    if (!this.#isChecked && this.#refusal === null) readiness.set('installation', { ok: true });
    this.#isChecked = true;
    this.#report(this.#refusal?.message ?? null);
  }
}

/** Answers 503 for a role that must not touch what is in Redis. */
export function answerForeign(request: IncomingMessage, response: ServerResponse): void {
  const error = new PosthornError('UNAVAILABLE', 'This server is not connected to the Redis of its installation.', {
    retryAfterSeconds: retryMs / 1000,
  });
  answerError(response, requestIdFor(request.headers['x-request-id']), error);
}
