import type { Clock } from '../core/clock.ts';
import { isPosthornError, type PosthornError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { Kind } from '../resources/kinds.ts';
import type { StoreMetrics } from './metrics.ts';
import { ReflectorBackoff } from './reflector-backoff.ts';
import type { ReflectorSink } from './served-objects.ts';
import { type ListQuery, type ResourceStore, type Version, versionOf } from './store.ts';

/** `syncing` until the first complete list; `degraded` while the store fails, the cache then being stale. */
export type ReflectorState = 'syncing' | 'synced' | 'degraded';

export interface ReflectorOptions<K extends Kind> {
  store: Pick<ResourceStore, 'list' | 'watch'>;
  cache: ReflectorSink<K>;
  clock: Clock;
  logger: Logger;
  metrics: StoreMetrics;
  /** Only this namespace; absent: all. */
  namespace?: string;
}

/**
 * Keeps a cache equal to a resource store, with the promises of client-go's reflector: list, then watch from the
 * list's version; EXPIRED lists again; any other end of a watch resumes from the last version seen, after a jittered
 * backoff of 0.8 s to 30 s when it failed. It never gives up. See docs/decisions/0007-own-reflector.md.
 */
export class Reflector<K extends Kind> {
  readonly kind: K;
  readonly #options: ReflectorOptions<K>;
  readonly #backoff: ReflectorBackoff;
  readonly #synced = Promise.withResolvers<void>();
  #state: ReflectorState = 'syncing';
  #degradedSinceMs: number | null = null;
  #version: Version | null = null;
  #failuresInARow = 0;

  constructor(options: ReflectorOptions<K>) {
    this.#options = options;
    this.kind = options.cache.kind;
    this.#backoff = new ReflectorBackoff(options.clock);
  }

  get state(): ReflectorState {
    return this.#state;
  }

  /** Since when the store has failed (milliseconds since the epoch); null while it works. */
  get degradedSinceMs(): number | null {
    return this.#degradedSinceMs;
  }

  /** Resolves once the first complete list is in the cache. */
  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  /** Runs until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        this.#version ??= await this.#list(signal);
        await this.#watch(this.#version, signal);
      } catch (error) {
        if (signal.aborted) return;
        await this.#failed(error, signal);
      }
    }
  }

  async #list(signal: AbortSignal): Promise<Version> {
    const { store, cache, metrics, namespace } = this.#options;
    try {
      const items = [];
      const query: ListQuery = namespace === undefined ? {} : { namespace };
      let page = await store.list(this.kind, query);
      items.push(...page.items);
      while (page.continueToken !== undefined && !signal.aborted) {
        page = await store.list(this.kind, { ...query, continueToken: page.continueToken });
        items.push(...page.items);
      }
      signal.throwIfAborted();
      cache.replace(items, namespace);
      metrics.reflectorLists.inc({ kind: this.kind, outcome: 'success' });
      this.#healthy();
      this.#synced.resolve();
      return page.version;
    } catch (error) {
      if (!signal.aborted) metrics.reflectorLists.inc({ kind: this.kind, outcome: codeOf(error) });
      throw error;
    }
  }

  async #watch(from: Version, signal: AbortSignal): Promise<void> {
    const { store, cache, clock, metrics, namespace } = this.#options;
    const startedAtMs = clock.now();
    let events = 0;
    try {
      for await (const event of store.watch(this.kind, from, signal, namespace === undefined ? {} : { namespace })) {
        if (event.type !== 'bookmark' || event.version !== from) {
          events++;
          this.#failuresInARow = 0;
        }
        metrics.reflectorEvents.inc({ kind: this.kind, type: event.type });
        switch (event.type) {
          case 'added':
          case 'modified':
            cache.upsert(event.object);
            this.#version = versionOf(event.object);
            break;
          case 'deleted':
            cache.remove(event.object);
            this.#version = versionOf(event.object);
            break;
          case 'bookmark':
            this.#version = event.version;
            break;
          default:
            event satisfies never;
        }
        this.#healthy();
      }
      metrics.reflectorWatchEnds.inc({ kind: this.kind, reason: 'closed' });
    } catch (error) {
      if (!signal.aborted) metrics.reflectorWatchEnds.inc({ kind: this.kind, reason: codeOf(error) });
      throw error;
    }
    if (signal.aborted) return;
    if (clock.now() - startedAtMs >= veryShortWatchMs) this.#failuresInARow = 0;
    else if (events === 0) throw new Error('the watch ended at once');
  }

  #healthy(): void {
    if (this.#state === 'degraded') this.#options.logger.info({ kind: this.kind }, 'the cache follows the resource store again');
    this.#state = 'synced';
    this.#degradedSinceMs = null;
    this.#options.metrics.reflectorHealthy.set({ kind: this.kind }, 1);
    this.#options.metrics.cachedObjects.set({ kind: this.kind }, this.#options.cache.size);
  }

  async #failed(error: unknown, signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options;
    this.#failuresInARow++;
    const expired = isPosthornError(error, 'EXPIRED');
    // Another kind of failure that does not end may come from the version itself, such as one from before a restore.
    const lastsLong = this.#failuresInARow % failuresBeforeRelist === 0;
    if (expired || lastsLong) this.#version = null;
    if (expired && this.#failuresInARow === 1) return;

    const isNew = this.#degradedSinceMs === null;
    this.#degrade();
    const delayMs = this.#backoff.next(retryAfterMs(error));
    // A long outage of the store is not logged at every try.
    logger[isNew || lastsLong ? 'warn' : 'debug'](
      { err: error, kind: this.kind, code: codeOf(error), delayMs, relist: this.#version === null },
      'the cache cannot follow the resource store',
    );
    await clock.sleep(delayMs, signal);
  }

  #degrade(): void {
    this.#degradedSinceMs ??= this.#options.clock.now();
    if (this.#state === 'synced') this.#state = 'degraded';
    this.#options.metrics.reflectorHealthy.set({ kind: this.kind }, 0);
  }
}

const veryShortWatchMs = 1000;
const failuresBeforeRelist = 10;

function codeOf(error: unknown): string {
  return isPosthornError(error) ? (error as PosthornError).code : 'ended';
}

function retryAfterMs(error: unknown): number {
  return isPosthornError(error) ? 1000 * ((error as PosthornError).retryAfterSeconds ?? 0) : 0;
}
