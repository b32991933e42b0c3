import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { Script } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';

const forgetScript = new Script(new URL('./unfinished-forget.lua', import.meta.url));
const intervalMs = 30_000;
const organizationsPerLook = 1000;
/** Longer than a piece of work can be under way between its announcement and its script. */
const forgottenAfterMs = 60_000;

/**
 * Shared list of organizations with work of several steps under way. Work is announced before it begins; every process scans the list and finishes what a
 * process that died has left.
 */
export class RecoveryScanner {
  readonly #options: { redis: RedisClient; key: string; clock: Clock };

  /** `key`: of the list, a sorted set. */
  constructor({ redis, key, clock }: { redis: RedisClient; key: string; clock: Clock }) {
    this.#options = { redis, key, clock };
  }

  /** To be called before the script that begins. Throws UNAVAILABLE. */
  async announce(org: string): Promise<void> {
    const { redis, key, clock } = this.#options;
    await redis.zadd(key, clock.now(), org).catch(throwUnavailable);
  }

  /** Scans every 30 s until the signal aborts. `what` is logged when a scan fails. */
  async run(finish: FinishWork, { logger, what, signal }: { logger: Logger; what: string; signal: AbortSignal }): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      await clock.sleep(intervalMs * (0.8 + 0.4 * Math.random()), signal);
      if (signal.aborted) return;
      await this.scanOnce(finish, signal).catch((error: unknown) => logger.warn({ err: error }, `${what}; retrying`));
    }
  }

  /** Lets `finish` finish the work of each organization. Throws UNAVAILABLE. */
  async scanOnce(finish: FinishWork, signal?: AbortSignal): Promise<void> {
    const { redis, key, clock } = this.#options;
    const organizations = await redis.zrange(key, '0', String(organizationsPerLook - 1)).catch(throwUnavailable);
    for (const org of organizations) {
      const beganAtMs = await redis.zscore(key, org).catch(throwUnavailable);
      const isFinished = await finish(org, signal);
      if (signal?.aborted) return;
      if (!isFinished || beganAtMs === null || clock.now() - Number(beganAtMs) < forgottenAfterMs) continue;
      await forgetScript.run(redis, [key], [org, beganAtMs]).catch(throwUnavailable);
    }
  }
}

/** Returns whether nothing is left. */
type FinishWork = (org: string, signal?: AbortSignal) => Promise<boolean>;
