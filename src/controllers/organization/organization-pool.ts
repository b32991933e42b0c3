import type { Refusal } from '../../compile/compiled.ts';
import { defaultPool } from '../../core/default-pool.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { ResourceCache } from '../../store/cache.ts';
import { isLive } from '../references.ts';

/** The DeliveryPools of an installation that has them, and who notes which of them serves an organization. */
export interface Pools {
  /** Of the namespace in which pools are. */
  cache: ResourceCache<'DeliveryPool'>;
  /** May be called again. */
  assign(org: string, pool: string): Promise<void>;
}

export interface PoolReference {
  /** Null: the default one. */
  pool: string | null;
  unresolved?: Refusal;
  /** Which pools there are is not known yet: look again soon. */
  isUnknown?: true;
}

/**
 * The pool that an organization names; the default one serves it while that is not there, so that nothing waits for nobody. `inForce`: the
 * one by which it is served now.
 */
export function poolReference(
  { spec }: PosthornObject<'Organization'>,
  cache: ResourceCache<'DeliveryPool'> | undefined,
  inForce: string | null,
): PoolReference {
  const name = spec.deliveryPool ?? defaultPool;
  if (cache === undefined || name === defaultPool) return { pool: null };
  if (!cache.isFilled) return { pool: inForce, isUnknown: true };
  if (cache.list().some((pool) => pool.metadata.name === name && isLive(pool))) return { pool: name };
  const message = `spec.deliveryPool: DeliveryPool ${name} does not exist; the pool ${defaultPool} serves the organization`;
  return { pool: null, unresolved: { reason: 'DeliveryPoolNotFound', message } };
}
