import type { WorkerEgress } from '../../compile/outgoing-address.ts';
import { canonicalJson } from '../../core/canonical-json.ts';
import { defaultPool } from '../../core/default-pool.ts';
import type { RefusedAddresses } from '../../core/egress-policy.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { ResourceCache } from '../../store/cache.ts';
import { servingPool } from '../organization/organization-pool.ts';

type Organization = PosthornObject<'Organization'>;
/** What the workers of a pool may send requests to by their environment. */
export type PoolEgress = Omit<WorkerEgress, 'refused'>;

/** Tracks what the workers that serve an organization may reach. */
export interface WorkerEgressSource {
  /** Null: not known now. */
  of(organization: Organization): WorkerEgress | null;
  /** Calls back for each organization whose workers' egress rules have changed. Returns the function that ends it. */
  onChange(listener: (organization: Organization) => void): () => void;
}

/** All workers have the configuration of this process. */
export function sameEgressForAll(rules: WorkerEgress): WorkerEgressSource {
  return { of: () => rules, onChange: () => () => {} };
}

/** The workers of each pool have the rules of its environment. */
export class PoolEgressSource implements WorkerEgressSource {
  readonly #pools: ResourceCache<'DeliveryPool'>;
  readonly #organizations: ResourceCache<'Organization'>;
  readonly #refused: RefusedAddresses;
  readonly #rules = new Map<string, PoolEgress>();
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
  note(pool: string, rules: PoolEgress | null): void {
    if (canonicalJson(rules) === canonicalJson(this.#rules.get(pool) ?? null)) return;
    if (rules === null) this.#rules.delete(pool);
    else this.#rules.set(pool, rules);
    for (const organization of this.#organizations.list()) {
      const named = organization.spec.deliveryPool ?? defaultPool;
      if (named === pool || servingPool(organization, this.#pools) === pool) for (const listener of this.#listeners) listener(organization);
    }
  }

  of(organization: Organization): WorkerEgress | null {
    const rules = this.#rules.get(servingPool(organization, this.#pools));
    return rules === undefined ? null : { ...rules, refused: this.#refused };
  }

  onChange(listener: (organization: Organization) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
