import type { Refusal } from '../../compile/compiled.ts';
import { defaultPool } from '../../core/default-pool.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { ResourceCache } from '../../store/cache.ts';
import { isLive } from '../held-ids.ts';

/** The DeliveryPools of an installation that has them, and the writer of organizations' pools. */
export interface Pools {
  /** Cache of the namespace in which pools are. */
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

/** Whether there is a pool of this name that is not about to go. */
function isPoolThere(cache: ResourceCache<'DeliveryPool'>, name: string): boolean {
  return cache.list().some((pool) => pool.metadata.name === name && isLive(pool));
}

/** The pool that serves an organization: the one that it names, and the default one while that is not there. */
export function servingPool({ spec }: PosthornObject<'Organization'>, cache: ResourceCache<'DeliveryPool'>): string {
  const named = spec.deliveryPool ?? defaultPool;
  return isPoolThere(cache, named) ? named : defaultPool;
}

/**
 * The pool that an organization names; the default one serves it while that is missing, so that its messages do not wait. That the default
 * one itself is missing is reported for every organization that it would serve. `inForce`: the one by which it is served now.
 */
export function poolReference(
  organization: PosthornObject<'Organization'>,
  cache: ResourceCache<'DeliveryPool'> | undefined,
  inForce: string | null,
): PoolReference {
  const name = organization.spec.deliveryPool ?? defaultPool;
  if (cache === undefined) return { pool: null };
  if (!cache.isFilled) return { pool: name === defaultPool ? null : inForce, isUnknown: true };
  const serving = servingPool(organization, cache);
  const pool = serving === defaultPool ? null : serving;
  const isServed = isPoolThere(cache, serving);
  if (serving === name && isServed) return { pool };
  const message =
    name === defaultPool
      ? `DeliveryPool ${name} does not exist; nothing is delivered until it is made`
      : isServed
        ? `spec.deliveryPool: DeliveryPool ${name} does not exist; the pool ${defaultPool} serves the organization`
        : `spec.deliveryPool: neither DeliveryPool ${name} nor ${defaultPool} exists; nothing is delivered until one of them is made`;
  return { pool, unresolved: { reason: 'DeliveryPoolNotFound', message } };
}
