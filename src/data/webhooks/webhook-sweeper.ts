import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { Script } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { integer } from '../script-reply.ts';
import { sharedWebhookKeys } from './webhook-keys.ts';
import { WebhookScripts } from './webhook-scripts.ts';

const sweptScript = new Script(new URL('../scripts/webhook-swept.lua', import.meta.url));
const removedPerStep = 100;
/** How many steps whoever deletes waits for. */
const stepsAtOnce = 20;
const intervalMs = 30_000;
const organizationsPerLook = 100;
/** Longer than a deletion can be under way between its announcement and its script. */
const forgottenAfterMs = 60_000;

/**
 * Removes what is below deleted applications, endpoints and event types, in small steps. A deletion is announced before it is made, in a list
 * of organizations that all processes share, so that whoever looks there finishes what a process that died has begun.
 */
export class WebhookSweeper {
  readonly #options: { redis: RedisClient; prefix: string; clock: Clock; logger: Logger };
  readonly #scripts: WebhookScripts;
  readonly #underWay = new Set<string>();

  constructor(options: { redis: RedisClient; prefix: string; clock: Clock; logger: Logger }) {
    this.#options = options;
    this.#scripts = new WebhookScripts(options);
  }

  /** To be called before the script that deletes. Throws UNAVAILABLE. */
  async announce(org: string): Promise<void> {
    const { redis, prefix, clock } = this.#options;
    await redis.zadd(sharedWebhookKeys(prefix).unfinished, clock.now(), org).catch(throwUnavailable);
  }

  /** After the deletion: removes what is not much, and goes on in the background with the rest. Never fails: the periodic look tries again. */
  async begin(org: string): Promise<void> {
    try {
      for (let steps = 0; steps < stepsAtOnce; steps++) if (!(await this.#step(org))) return;
    } catch (error) {
      this.#options.logger.warn({ err: error, organization: org }, 'what was deleted is removed later');
      return;
    }
    if (this.#underWay.has(org)) return;
    this.#underWay.add(org);
    void this.#finish(org)
      .catch((error: unknown) => this.#options.logger.warn({ err: error, organization: org }, 'what was deleted is removed later'))
      .finally(() => this.#underWay.delete(org));
  }

  /** Finishes what others have begun, every 30 s until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options;
    while (!signal.aborted) {
      await clock.sleep(intervalMs * (0.8 + 0.4 * Math.random()), signal);
      if (signal.aborted) return;
      await this.sweep(signal).catch((error: unknown) =>
        logger.warn({ err: error }, 'what was deleted could not be removed; trying again'),
      );
    }
  }

  /** One look. Throws UNAVAILABLE. */
  async sweep(signal?: AbortSignal): Promise<void> {
    const { redis, prefix, clock } = this.#options;
    const { unfinished } = sharedWebhookKeys(prefix);
    const organizations = await redis.zrange(unfinished, '0', String(organizationsPerLook - 1)).catch(throwUnavailable);
    for (const org of organizations) {
      const beganAtMs = await redis.zscore(unfinished, org).catch(throwUnavailable);
      await this.#finish(org, signal);
      if (signal?.aborted) return;
      if (beganAtMs === null || clock.now() - Number(beganAtMs) < forgottenAfterMs) continue;
      await sweptScript.run(redis, [unfinished], [org, beganAtMs]).catch(throwUnavailable);
    }
  }

  async #finish(org: string, signal?: AbortSignal): Promise<void> {
    while (!signal?.aborted && (await this.#step(org)));
  }

  async #step(org: string): Promise<boolean> {
    return integer(await this.#scripts.run('sweep', org, [removedPerStep])) === 1;
  }
}
