import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Metrics of the caches and of the clients behind them; `createStoreMetrics` once per process. */
export interface StoreMetrics {
  /** 1 while the reflector has a complete list and an open watch. */
  reflectorHealthy: Gauge<'kind'>;
  reflectorLists: Counter<'kind' | 'outcome'>;
  /** `reason`: closed, or the code of the error. */
  reflectorWatchEnds: Counter<'kind' | 'reason'>;
  reflectorEvents: Counter<'kind' | 'type'>;
  cachedObjects: Gauge<'kind'>;
  requestSeconds: Histogram<'verb' | 'kind' | 'outcome'>;
}

export function createStoreMetrics(registry: Registry): StoreMetrics {
  const registers = [registry];
  return {
    reflectorHealthy: new Gauge({
      name: 'posthorn_reflector_healthy',
      help: 'Whether the cache of the kind follows the resource store (1) or is stale (0).',
      labelNames: ['kind'],
      registers,
    }),
    reflectorLists: new Counter({
      name: 'posthorn_reflector_lists_total',
      help: 'Full lists that reflectors requested, by kind and outcome: success or the error code.',
      labelNames: ['kind', 'outcome'],
      registers,
    }),
    reflectorWatchEnds: new Counter({
      name: 'posthorn_reflector_watch_ends_total',
      help: 'Watches that ended, by kind and reason: closed or the error code.',
      labelNames: ['kind', 'reason'],
      registers,
    }),
    reflectorEvents: new Counter({
      name: 'posthorn_reflector_events_total',
      help: 'Watch events that reflectors received, by kind and type.',
      labelNames: ['kind', 'type'],
      registers,
    }),
    cachedObjects: new Gauge({
      name: 'posthorn_cached_objects',
      help: 'Objects in the cache, by kind.',
      labelNames: ['kind'],
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'posthorn_store_request_duration_seconds',
      help: 'Duration of requests to the resource store, by verb, kind and outcome.',
      labelNames: ['verb', 'kind', 'outcome'],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 15],
      registers,
    }),
  };
}
