import { randomUUID } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { Script } from '../../redis/script.ts';
import { redisUnavailable, throwUnavailable } from '../../redis/unavailable.ts';

export interface OrganizationLockOptions {
  redis: RedisClient;
  prefix: string;
  clock: Clock;
  logger: Logger;
}

/** The lock expires after this time without a renewal, for example after its holder has died. */
const heldAtMostMs = 30_000;
const waitAtMostMs = 10_000;
const notesKeptMs = 60_000;
const shortestPauseMs = 5;
const longestPauseMs = 100;
const renew = new Script(new URL('./lock-renew.lua', import.meta.url));
const release = new Script(new URL('./lock-release.lua', import.meta.url));

/** Keys: the lock, the hash of its holders' notes, and the write-ahead log (`WriteAheadLog`). */
export function organizationLockKeys(prefix: string, organization: string): { lock: string; notes: string; begun: string } {
  const lock = `${prefix}{lock:${organization}}`;
  return { lock, notes: `${lock}:notes`, begun: `${lock}:begun` };
}

/**
 * Lock with one holder per organization, over all replicas. Checks for uniqueness and use, and the writes that depend on them, run under it. Each holder leaves
 * notes about its writes, and the next one waits until its cache shows them.
 */
export class OrganizationLock {
  readonly #options: OrganizationLockOptions;

  constructor(options: OrganizationLockOptions) {
    this.#options = options;
  }

  /**
   * Runs `action` while holding the lock. `action` gets the notes of the last minute (text by topic) and `note`, which adds one. Throws UNAVAILABLE when Redis
   * does not answer or the lock is not free within 10 s.
   */
  async run<T>(
    organization: string,
    action: (notes: ReadonlyMap<string, string>, note: (topic: string, text: string) => void) => Promise<T>,
  ): Promise<T> {
    const { redis, prefix, logger } = this.#options;
    const { lock, notes: notesKey } = organizationLockKeys(prefix, organization);
    const token = randomUUID();
    await this.#acquire(lock, token);
    const left = new Map<string, string>();
    const stopRenewing = this.#keepRenewing(lock, token);
    try {
      const notes = await redis.hgetall(notesKey).catch(throwUnavailable);
      return await action(new Map(Object.entries(notes)), (topic, text) => left.set(topic, text));
    } finally {
      stopRenewing();
      await release.run(redis, [lock, notesKey], [token, notesKeptMs, ...[...left].flat()]).catch((error: unknown) => {
        logger.warn({ err: error, organization }, 'a lock could not be released; it expires by itself');
      });
    }
  }

  /** Renews the lock: imports may take longer than it lasts. */
  #keepRenewing(lock: string, token: string): () => void {
    const { redis, clock } = this.#options;
    let stop = (): void => {};
    const schedule = (): void => {
      stop = clock.after(heldAtMostMs / 3, () => {
        schedule();
        renew.run(redis, [lock], [token, heldAtMostMs]).catch(() => {});
      });
    };
    schedule();
    return () => stop();
  }

  async #acquire(lock: string, token: string): Promise<void> {
    const { redis, clock } = this.#options;
    const deadlineMs = clock.now() + waitAtMostMs;
    for (let pauseMs = shortestPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 1.5)) {
      try {
        if ((await redis.set(lock, token, 'PX', heldAtMostMs, 'NX')) === 'OK') return;
      } catch (error) {
        throw redisUnavailable(error);
      }
      if (clock.now() > deadlineMs)
        throw new PosthornError('UNAVAILABLE', 'Another change of this organization is still under way.', { retryAfterSeconds: 1 });
      await clock.sleep(pauseMs * (0.5 + Math.random()));
    }
  }
}
