import type { Kind } from '../../resources/kinds.ts';

/** Names of the store's keys; one hash tag, so that its scripts run on Redis Cluster. */
export class StoreKeys {
  readonly meta: string;
  readonly changes: string;
  readonly dependents: string;
  readonly #base: string;

  constructor(prefix: string) {
    this.#base = `${prefix}{store}:`;
    this.meta = `${this.#base}meta`;
    this.changes = `${this.#base}changes`;
    this.dependents = `${this.#base}dependents`;
  }

  objects(kind: Kind): string {
    return `${this.#base}objects:${kind}`;
  }

  names(kind: Kind): string {
    return `${this.#base}names:${kind}`;
  }
}

/** Fields of the entries of the stream of changes, in their order; scripts name them `F.store_change.type`. */
export const storeFields = { storeChange: { type: 't', kind: 'k', namespace: 'n', object: 'o' } } as const;
