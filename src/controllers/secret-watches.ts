import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import type { ResourceCache } from '../store/cache.ts';
import type { StoreMetrics } from '../store/metrics.ts';
import { Reflector } from '../store/reflector.ts';
import type { ResourceStore } from '../store/store.ts';

export interface SecretWatchesOptions {
  store: ResourceStore;
  secrets: ResourceCache<'Secret'>;
  organizations: ResourceCache<'Organization'>;
  clock: Clock;
  logger: Logger;
  metrics: StoreMetrics;
}

/**
 * Follows the metadata of Secrets in the namespaces of organizations, and nowhere else: one list and watch for each, from when the leader has
 * made the namespace with the rights in it until the organization goes. A right that is missing all the same is waited for with back-off.
 */
export class SecretWatches {
  readonly #options: SecretWatchesOptions;
  readonly #running = new Map<string, { stop: AbortController; ended: Promise<void> }>();

  constructor(options: SecretWatchesOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { organizations } = this.#options;
    const unsubscribe = organizations.onChange((_key, { before, after }) => {
      if (before?.spec.namespace === after?.spec.namespace && hasNamespace(before) === hasNamespace(after)) return;
      for (const namespace of new Set([before?.spec.namespace, after?.spec.namespace]))
        if (namespace !== undefined) this.#adjust(namespace, signal);
    });
    for (const { spec } of organizations.list()) this.#adjust(spec.namespace, signal);
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    unsubscribe();
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  #adjust(namespace: string, signal: AbortSignal): void {
    const { organizations, secrets } = this.#options;
    const isWanted = !signal.aborted && organizations.byIndex('namespace', namespace).some(hasNamespace);
    const running = this.#running.get(namespace);
    if (isWanted && running === undefined) {
      const stop = new AbortController();
      const reflector = new Reflector({ ...this.#options, cache: secrets, namespace });
      this.#running.set(namespace, { stop, ended: reflector.run(AbortSignal.any([signal, stop.signal])) });
    }
    if (!isWanted && running !== undefined) {
      this.#running.delete(namespace);
      running.stop.abort();
      void running.ended.then(() => {
        if (!this.#running.has(namespace)) secrets.replace([], namespace);
      });
    }
  }
}

/** The leader reports it once it has made or adopted the namespace, and granted the rights. */
function hasNamespace(organization: PosthornObject<'Organization'> | undefined): boolean {
  return organization?.status?.namespaceUid !== undefined;
}
