import { defaultPool } from '../../core/default-pool.ts';

/** Suffix of the keys of a pool, and of the ids of its workers (`includes/pools.lua`). */
export function poolSuffix(pool: string): string {
  return pool === defaultPool ? '' : `@${pool}`;
}

/** The pool of a worker, by its id. */
export function poolOfWorker(id: string): string {
  const at = id.indexOf('@');
  return at === -1 ? defaultPool : id.slice(at + 1);
}
