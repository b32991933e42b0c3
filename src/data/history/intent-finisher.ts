import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { unfinishedIntentsKey } from '../intake/intake-keys.ts';
import { RecoveryScanner } from '../locks/recovery-scanner.ts';
import { finishIntent } from './carry-out-intent.ts';
import { MessageIntents } from './message-intents.ts';

/** Finishes the replays and archivings that a process has begun and not ended: it died, or Redis was down or full. */
export class IntentFinisher {
  readonly #options: { redis: RedisClient; prefix: string; clock: Clock; logger: Logger };
  readonly #intents: MessageIntents;
  readonly #unfinished: RecoveryScanner;

  constructor(options: { redis: RedisClient; prefix: string; clock: Clock; logger: Logger }) {
    this.#options = options;
    this.#intents = new MessageIntents(options);
    this.#unfinished = new RecoveryScanner({ ...options, key: unfinishedIntentsKey(options.prefix) });
  }

  /** Every 30 s until the signal aborts. */
  run(signal: AbortSignal): Promise<void> {
    const { logger } = this.#options;
    return this.#unfinished.run((account) => this.#finish(account, signal), {
      logger,
      what: 'interrupted replays and archive operations could not be completed',
      signal,
    });
  }

  /** One look. Throws UNAVAILABLE. */
  look(signal?: AbortSignal): Promise<void> {
    return this.#unfinished.scanOnce((account) => this.#finish(account, signal), signal);
  }

  /** One that cannot be finished holds up no other. */
  async #finish(account: string, signal?: AbortSignal): Promise<boolean> {
    let isFinished = true;
    for (const id of await this.#intents.open(account)) {
      if (signal?.aborted) return false;
      try {
        const known = await this.#intents.find(account, id);
        // The client that began it may send it again: its connection was lost before it had the answer.
        if (known !== null && 'intent' in known) await finishIntent(this.#options, account, { ...known.intent, isAskedAgain: true });
      } catch (error) {
        isFinished = false;
        this.#options.logger.warn(
          { err: error, organization: account },
          'an interrupted bulk operation on messages could not be completed; retrying later',
        );
      }
    }
    return isFinished;
  }
}
