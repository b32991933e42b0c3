import type { IndexPart } from './index-pages.ts';
import type { ShardReader } from './shard-reader.ts';

/** Stands in the cursors of lists that walk the index of failures. */
const failureMark = 'f';

/** A list of messages all of which have failed or ended unsent. */
interface Wanted {
  org: string;
  /** The index that has all of the list, in the order of creation or nearly so. */
  index: string;
  /** The same in the order of creation, for what the index of failures does not reach. */
  byCreation: string;
  /** Whether members of a batch that waits for its next attempt belong to the list. */
  hasBatchMembers: boolean;
  /** What the cursor says (`markOf`); null: this is the first page. */
  mark: string | null;
}

/**
 * How the list is read: from the index of failures where that is the smaller one (`../queue/includes/failures-index.lua`), and from another one as far back as that
 * is not complete; undefined: from `index` alone. A list is read to its end from the index with which it began.
 */
export async function failureWalk(
  shards: readonly ShardReader[],
  { org, index, byCreation, hasBatchMembers, mark }: Wanted,
): Promise<{ mark: string; partsIn: (shard: ShardReader) => readonly IndexPart[] } | undefined> {
  if (mark === '') return undefined;
  const failures = `i:bad:${org}`;
  const found = await Promise.all(shards.map(async (shard) => ({ shard, ...(await shard.sizes(org, [failures, index])) })));
  const sum = (at: number): number => found.reduce((total, { sizes }) => total + (sizes[at] ?? 0), 0);
  const isComplete = found.every(({ hasFailedBatches }) => !hasBatchMembers || !hasFailedBatches);
  if (mark === null && (!isComplete || sum(0) >= sum(1))) return undefined;
  const since = new Map(found.map(({ shard, failuresSinceMs }) => [shard.shard, failuresSinceMs]));
  const partsIn = ({ shard }: ShardReader): readonly IndexPart[] => {
    const sinceMs = since.get(shard) ?? null;
    const rest = { index: byCreation, fromMs: 0 };
    if (sinceMs === null) return [rest];
    return sinceMs === 0 ? [{ index: failures, fromMs: 0 }] : [{ index: failures, fromMs: sinceMs }, rest];
  };
  return { mark: failureMark, partsIn };
}
