import { randomUUID } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { organizationLockKeys } from './organization-lock.ts';
import { RecoveryScanner } from './recovery-scanner.ts';

export interface WriteAheadLogOptions {
  redis: RedisClient;
  prefix: string;
  clock: Clock;
  logger: Logger;
}

/**
 * Write-ahead log of changes of several resources, per organization, for holders of its lock (`OrganizationLock`). An entry is written before the first write
 * and removed after the last. The next holder of the lock finishes pending entries first, and processes scan for those of one that died. Rejects with
 * UNAVAILABLE when Redis does not answer.
 */
export class WriteAheadLog {
  readonly #options: WriteAheadLogOptions;
  readonly #unfinished: RecoveryScanner;

  constructor(options: WriteAheadLogOptions) {
    this.#options = options;
    this.#unfinished = new RecoveryScanner({ ...options, key: `${options.prefix}{begun}:unfinished` });
  }

  /** `text` describes the work. Returns the id of the entry. */
  async begin(org: string, text: string): Promise<string> {
    const id = randomUUID();
    await this.#unfinished.announce(org);
    await this.#options.redis.hset(this.#key(org), id, text).catch(throwUnavailable);
    return id;
  }

  async end(org: string, id: string): Promise<void> {
    await this.#options.redis.hdel(this.#key(org), id).catch(throwUnavailable);
  }

  /** Pending entries by id. */
  async pending(org: string): Promise<ReadonlyMap<string, string>> {
    return new Map(Object.entries(await this.#options.redis.hgetall(this.#key(org)).catch(throwUnavailable)));
  }

  /** Lets `finish` finish what is left in an organization, every 30 s until the signal aborts. */
  run(finish: (org: string) => Promise<void>, signal: AbortSignal): Promise<void> {
    return this.#unfinished.run((org) => this.#finish(org, finish), {
      logger: this.#options.logger,
      what: 'interrupted changes and deletions could not be completed',
      signal,
    });
  }

  scanOnce(finish: (org: string) => Promise<void>): Promise<void> {
    return this.#unfinished.scanOnce((org) => this.#finish(org, finish));
  }

  /** One that cannot be finished holds up no other. */
  async #finish(org: string, finish: (org: string) => Promise<void>): Promise<boolean> {
    try {
      if ((await this.pending(org)).size > 0) await finish(org);
      return true;
    } catch (error) {
      this.#options.logger.warn(
        { err: error, organization: org },
        'an interrupted write of several resources could not be completed; retrying later',
      );
      return false;
    }
  }

  #key(org: string): string {
    return organizationLockKeys(this.#options.prefix, org).begun;
  }
}
