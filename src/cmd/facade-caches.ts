import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { ResourceCaches } from '../facade/http/services.ts';
import { ResourceCache } from '../store/cache.ts';
import type { StoreMetrics } from '../store/metrics.ts';
import { Reflector } from '../store/reflector.ts';
import type { ResourceStore } from '../store/store.ts';

/** The caches of the kinds that the facade serves, and what keeps them. */
export class FacadeCaches {
  readonly caches: ResourceCaches;
  readonly #reflectors: readonly { run(signal: AbortSignal): Promise<void>; synced: Promise<void> }[];

  constructor(options: { store: ResourceStore; clock: Clock; logger: Logger; metrics: StoreMetrics }) {
    const { logger } = options;
    // The facade compares the owners of fields before it writes.
    const cached = { logger, keepManagedFields: true };
    const caches = {
      Source: new ResourceCache('Source', cached),
      Destination: new ResourceCache('Destination', cached),
      Route: new ResourceCache('Route', cached),
      Filter: new ResourceCache('Filter', cached),
      Transform: new ResourceCache('Transform', cached),
      PayloadSchema: new ResourceCache('PayloadSchema', cached),
      NotificationChannel: new ResourceCache('NotificationChannel', cached),
      HttpCronJob: new ResourceCache('HttpCronJob', cached),
      ApiKey: new ResourceCache('ApiKey', cached),
      WebhookEventType: new ResourceCache('WebhookEventType', cached),
    };
    this.caches = caches;
    this.#reflectors = [
      new Reflector({ ...options, cache: caches.Source }),
      new Reflector({ ...options, cache: caches.Destination }),
      new Reflector({ ...options, cache: caches.Route }),
      new Reflector({ ...options, cache: caches.Filter }),
      new Reflector({ ...options, cache: caches.Transform }),
      new Reflector({ ...options, cache: caches.PayloadSchema }),
      new Reflector({ ...options, cache: caches.NotificationChannel }),
      new Reflector({ ...options, cache: caches.HttpCronJob }),
      new Reflector({ ...options, cache: caches.ApiKey }),
      new Reflector({ ...options, cache: caches.WebhookEventType }),
    ];
  }

  /** Resolves once the first complete list of every kind is in. */
  get synced(): Promise<void> {
    return Promise.all(this.#reflectors.map(({ synced }) => synced)).then(() => {});
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.run(signal)));
  }
}
