import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import { ChangeStream, type ChangeStreamOptions } from './change-stream.ts';
import { DependencyCache, type Loaded } from './dependency-cache.ts';

export interface FollowedCacheOptions extends Pick<ChangeStreamOptions, 'blocking' | 'keys'> {
  clock: Clock;
  logger: Logger;
  /** Values kept in memory; default 50,000. */
  maxEntries?: number | undefined;
  /** Maximum age of a value; absent: it is cached until it changes. */
  keptMs?: number;
  /** Default true; false: a value is kept from the third load on. */
  keepsFirst?: boolean;
}

/**
 * Reader-side cache of the records that others write: a change in the stream invalidates what depends on it, then notifies the listeners. `stop` ends the
 * connection that follows the stream.
 */
export class FollowedCache {
  readonly #cache: DependencyCache;
  readonly #stream: ChangeStream;
  readonly #logger: Logger;
  readonly #listeners = new Set<(changeKey: string) => void>();

  constructor({ maxEntries = 50_000, keptMs, keepsFirst = true, clock, logger, ...stream }: FollowedCacheOptions) {
    this.#cache = new DependencyCache(maxEntries, { keepsFirst, ...(keptMs !== undefined && { aging: { keptMs, clock } }) });
    this.#logger = logger;
    this.#stream = new ChangeStream({
      ...stream,
      clock,
      logger,
      onChange: (changeKeys) => {
        for (const changeKey of changeKeys) this.#cache.invalidate(changeKey);
        for (const changeKey of changeKeys) this.#notify(changeKey);
      },
      onFlush: () => this.flush(),
    });
  }

  /** Begins to follow the changes; Redis need not be up. */
  start(): void {
    this.#stream.start();
  }

  async stop(): Promise<void> {
    await this.#stream.stop();
  }

  /** The cached value, or that of `load`. The caller's keys determine the types of the values. */
  get<T>(key: string, load: () => Promise<Loaded<T>>): Promise<T> {
    return this.#cache.get(key, load);
  }

  /** Invalidates all, as when any change may have been missed. */
  flush(): void {
    this.#cache.flush();
    this.#notify('*');
  }

  /** Calls back after a change, with its change key, or with `*` when any may have been missed. Returns the function that ends it. */
  onChange(listener: (changeKey: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #notify(changeKey: string): void {
    for (const listener of this.#listeners) {
      try {
        listener(changeKey);
      } catch (error) {
        this.#logger.error({ err: error, changeKey }, 'a change listener failed');
      }
    }
  }
}
