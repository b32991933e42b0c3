import type { Clock } from '../core/clock.ts';
import type { Keyring } from '../core/sealing.ts';
import type { ReplicatedWrites } from '../redis/replicated-writes.ts';
import type { KubernetesApi } from '../store/kubernetes/kubernetes-api.ts';
import type { KubernetesObjects } from '../store/kubernetes/kubernetes-objects.ts';
import { meteredStore } from '../store/metered-store.ts';
import type { StoreMetrics } from '../store/metrics.ts';
import { defaultBlockMs, RedisStore } from '../store/redis/redis-store.ts';
import type { CompleteStore } from '../store/store.ts';
import type { Config } from './config.ts';
import type { RedisLink } from './redis-link.ts';

export interface OpenedStore {
  store: CompleteStore;
  /** Null when resources live in Redis. */
  kubernetes: KubernetesApi | null;
  /** Finishes deletions that a process which died left half done; null where Kubernetes does. */
  sweep: ((signal: AbortSignal) => Promise<void>) | null;
  close(): Promise<void>;
}

/** Objects that are not Posthorn's own; null when resources live in Redis. */
export async function clusterObjects({ kubernetes }: OpenedStore, clock: Clock): Promise<KubernetesObjects | null> {
  if (kubernetes === null) return null;
  const { KubernetesObjects } = await import('../store/kubernetes/kubernetes-objects.ts');
  return new KubernetesObjects({ api: kubernetes, clock });
}

/**
 * The store that the configuration names; `writes` are for one in Redis. The client of Kubernetes, the larger part of a process, is loaded
 * only when it is used.
 */
export async function openResourceStore(
  link: RedisLink,
  config: Config,
  { clock, metrics, keyring, writes }: { clock: Clock; metrics: StoreMetrics; keyring: Keyring; writes?: ReplicatedWrites },
): Promise<OpenedStore> {
  if (config.resourceStore === 'redis') {
    const options = { keyring, prefix: config.redisKeyPrefix, clock };
    const store = openRedisStore(link, { ...options, ...(writes !== undefined && { writes }) });
    return {
      store: meteredStore(store, clock, metrics),
      kubernetes: null,
      sweep: (signal) => store.sweep(signal),
      close: async () => store.close(),
    };
  }
  const [{ connectKubernetes }, { KubernetesStore }] = await Promise.all([
    import('./kubernetes.ts'),
    import('../store/kubernetes/kubernetes-store.ts'),
  ]);
  const kubernetes = connectKubernetes(config, clock);
  const store = meteredStore(new KubernetesStore({ api: kubernetes, clock }), clock, metrics);
  return { store, kubernetes, sweep: null, close: () => kubernetes.close() };
}

export function openRedisStore(
  link: RedisLink,
  options: { keyring: Keyring; prefix: string; clock: Clock; writes?: ReplicatedWrites },
): RedisStore {
  return new RedisStore({
    ...options,
    redis: link.command('resources'),
    openBlocking: () => link.blocking('resource-changes', defaultBlockMs),
  });
}
