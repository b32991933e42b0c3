import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { RedisWebhookStore } from './redis-webhook-store.ts';
import type { FilterRun } from './webhooks.ts';

const maxWaiting = 1000;
const everyMs = 5000;

/**
 * Stores the last error of each subscription's filter: the first errors at once, later ones a few at a time every few seconds, so that errors cost little.
 */
export class FilterErrorNotes {
  readonly #options: { store: Pick<RedisWebhookStore, 'noteFilterError'>; clock: Clock; logger: Logger };
  readonly #waiting = new Map<string, { org: string; run: FilterRun }>();
  #isBusy = false;

  constructor(options: { store: Pick<RedisWebhookStore, 'noteFilterError'>; clock: Clock; logger: Logger }) {
    this.#options = options;
  }

  /** Queues an error. Returns false if too many wait. */
  note(org: string, subscriptionId: string, run: FilterRun): boolean {
    if (this.#waiting.size >= maxWaiting && !this.#waiting.has(subscriptionId)) return false;
    this.#waiting.set(subscriptionId, { org, run });
    if (!this.#isBusy) void this.#write();
    return true;
  }

  async #write(): Promise<void> {
    const { store, clock, logger } = this.#options;
    this.#isBusy = true;
    const some = [...this.#waiting];
    this.#waiting.clear();
    for (const [subscriptionId, { org, run }] of some) {
      await store.noteFilterError(org, subscriptionId, run).catch((reason: unknown) => {
        logger.debug({ err: reason, subscriptionId }, 'a filter error was not recorded');
      });
    }
    clock.after(everyMs, () => {
      this.#isBusy = false;
      if (this.#waiting.size > 0) void this.#write();
    });
  }
}
