import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { RecoveryScanner } from '../locks/recovery-scanner.ts';
import { integer } from '../shard/script-reply.ts';
import { RotationNotes } from './secret-rotations.ts';
import { sharedWebhookKeys } from './webhook-keys.ts';
import { WebhookScripts } from './webhook-scripts.ts';

const removedPerStep = 100;
/** How many steps the caller of a deletion waits for. */
const stepsAtOnce = 20;

/**
 * Removes what is below deleted applications, endpoints and event types, in small steps, and notes pending rotations of secrets. Each is announced before it is made:
 * all processes share the list of announced organizations. A process that reads the list finishes what a process that died has begun.
 */
export class WebhookSweeper {
  readonly #logger: Logger;
  readonly #unfinished: RecoveryScanner;
  readonly #scripts: WebhookScripts;
  readonly #rotations: RotationNotes;
  readonly #underWay = new Set<string>();

  constructor(options: { redis: RedisClient; prefix: string; clock: Clock; logger: Logger }) {
    this.#logger = options.logger;
    this.#unfinished = new RecoveryScanner({ ...options, key: sharedWebhookKeys(options.prefix).unfinished });
    this.#scripts = new WebhookScripts(options);
    this.#rotations = new RotationNotes(options);
  }

  /** To be called before the script that deletes. Throws UNAVAILABLE. */
  announce(org: string): Promise<void> {
    return this.#unfinished.announce(org);
  }

  /** After the deletion: removes what is not much, and goes on in the background with the rest. Never fails: the periodic look tries again. */
  async begin(org: string): Promise<void> {
    try {
      for (let steps = 0; steps < stepsAtOnce; steps++) if (!(await this.#step(org))) return;
    } catch (error) {
      this.#logger.warn({ err: error, organization: org }, 'the data of deleted webhook objects could not be removed; retrying later');
      return;
    }
    if (this.#underWay.has(org)) return;
    this.#underWay.add(org);
    void this.#removeAll(org)
      .catch((error: unknown) =>
        this.#logger.warn({ err: error, organization: org }, 'the data of deleted webhook objects could not be removed; retrying later'),
      )
      .finally(() => this.#underWay.delete(org));
  }

  /** Finishes what others have begun, every 30 s until the signal aborts. */
  run(signal: AbortSignal): Promise<void> {
    return this.#unfinished.run((org) => this.#finish(org, signal), {
      logger: this.#logger,
      what: 'the data of deleted webhook objects could not be removed',
      signal,
    });
  }

  /** One look. Throws UNAVAILABLE. */
  sweep(signal?: AbortSignal): Promise<void> {
    return this.#unfinished.scanOnce((org) => this.#finish(org, signal), signal);
  }

  async #finish(org: string, signal?: AbortSignal): Promise<boolean> {
    const isNoted = await this.#rotations.notePending(org).then(
      () => true,
      (error: unknown) => {
        this.#logger.warn({ err: error, organization: org }, 'secret.rotated events were not noted; retrying later');
        return false;
      },
    );
    return (await this.#removeAll(org, signal)) && isNoted;
  }

  async #removeAll(org: string, signal?: AbortSignal): Promise<boolean> {
    while (!signal?.aborted) if (!(await this.#step(org))) return true;
    return false;
  }

  async #step(org: string): Promise<boolean> {
    return integer(await this.#scripts.run('sweep', org, [removedPerStep])) === 1;
  }
}
