import { withJitter } from '../../core/backoff.ts';
import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { Component } from '../../runtime/supervisor.ts';
import type { ResourceStore } from '../../store/store.ts';
import type { AdminKeySource } from '../admin-key-file.ts';
import { applyAdminKey } from './standalone-objects.ts';

const retryMs = 10_000;

/** Makes the key that comes into the file the admin key of standalone. */
export class AdminKeyFollower implements Component {
  readonly name = 'admin-key';
  readonly #options: { store: Pick<ResourceStore, 'apply'>; source: AdminKeySource; clock: Clock; logger: Logger };
  #key: string;

  /** `key`: the one that is applied already. */
  constructor({
    key,
    ...options
  }: { store: Pick<ResourceStore, 'apply'>; source: AdminKeySource; key: string; clock: Clock; logger: Logger }) {
    this.#options = options;
    this.#key = key;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { store, source, clock, logger } = this.#options;
    let last = '';
    for (;;) {
      await source.changed(this.#key, clock, signal);
      if (signal.aborted) return;
      try {
        const key = source.read();
        await applyAdminKey(store, key);
        this.#key = key;
        last = '';
        logger.info({}, 'the admin key has changed; the earlier one is no longer valid');
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        if (message !== last) logger.error({ reason: message }, 'the admin key cannot be changed; the earlier one remains valid');
        last = message;
        await clock.sleep(withJitter(retryMs), signal);
      }
    }
  }
}
