import type { WorkerReach } from '../../compile/outgoing-address.ts';
import { canonicalJson } from '../../core/canonical-json.ts';
import { defaultPool } from '../../core/default-pool.ts';
import type { RefusedAddresses } from '../../core/egress-policy.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { ResourceCache } from '../../store/cache.ts';
import { servingPool } from '../organization/organization-pool.ts';

type Organization = PosthornObject<'Organization'>;
/** What the workers of a pool may send requests to by their environment. */
export type PoolReach = Omit<WorkerReach, 'refused'>;

/** Tracks what the workers that serve an organization may reach. */
export interface WorkerReaches {
  /** Null: not known now. */
  of(organization: Organization): WorkerReach | null;
  /** Calls back for each organization whose workers' egress rules have changed. Returns the function that ends it. */
  onChange(listener: (organization: Organization) => void): () => void;
}

/** All workers have the configuration of this process. */
export function sameForAll(reach: WorkerReach): WorkerReaches {
  return { of: () => reach, onChange: () => () => {} };
}

/** The workers of each pool have the rules of its environment. */
export class PoolReaches implements WorkerReaches {
  readonly #pools: ResourceCache<'DeliveryPool'>;
  readonly #organizations: ResourceCache<'Organization'>;
  readonly #refused: RefusedAddresses;
  readonly #reaches = new Map<string, PoolReach>();
  readonly #listeners = new Set<(organization: Organization) => void>();

  constructor(options: {
    pools: ResourceCache<'DeliveryPool'>;
    organizations: ResourceCache<'Organization'>;
    refused: RefusedAddresses;
  }) {
    this.#pools = options.pools;
    this.#organizations = options.organizations;
    this.#refused = options.refused;
  }

  /** Stores the environment of a pool; null: the pool is gone. */
  note(pool: string, reach: PoolReach | null): void {
    if (canonicalJson(reach) === canonicalJson(this.#reaches.get(pool) ?? null)) return;
    if (reach === null) this.#reaches.delete(pool);
    else this.#reaches.set(pool, reach);
    for (const organization of this.#organizations.list()) {
      const named = organization.spec.deliveryPool ?? defaultPool;
      if (named === pool || servingPool(organization, this.#pools) === pool) for (const listener of this.#listeners) listener(organization);
    }
  }

  of(organization: Organization): WorkerReach | null {
    const reach = this.#reaches.get(servingPool(organization, this.#pools));
    return reach === undefined ? null : { ...reach, refused: this.#refused };
  }

  onChange(listener: (organization: Organization) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
