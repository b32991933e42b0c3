import { defaultPool } from '../../core/default-pool.ts';

/** What keys of a pool, and the ids of its workers, end with (`includes/pools.lua`). */
export function poolMark(pool: string): string {
  return pool === defaultPool ? '' : `@${pool}`;
}
