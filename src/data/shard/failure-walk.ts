import type { IndexPart } from './index-pages.ts';
import { listed, type OneOrMore } from './message-filter.ts';
import type { ShardReader } from './shard-reader.ts';

/** Prefix of cursors of lists that walk the index of failures. */
const failureMark = 'f';

/** A list of messages all of which have failed or ended unsent. */
interface Wanted {
  org: string;
  /** The indexes that have all of the list, in the order of creation or nearly so. */
  index: OneOrMore;
  /** Whether members of a batch that waits for its next attempt belong to the list. */
  hasBatchMembers: boolean;
  /** The mark in the cursor (`cursorMark`); null: this is the first page. */
  mark: string | null;
}

/**
 * How the list is read: from the index of failures where that is the smaller one (`../queue/includes/failures-index.lua`); undefined: from `index`. A list is read to its end from the index with which it began.
 */
export async function failureWalk(
  shards: readonly ShardReader[],
  { org, index, hasBatchMembers, mark }: Wanted,
): Promise<{ mark: string; partsIn: (shard: ShardReader) => readonly IndexPart[] } | undefined> {
  if (mark === '') return undefined;
  const failures = `i:bad:${org}`;
  const found = await Promise.all(shards.map((shard) => shard.sizes(org, [failures, ...listed(index)])));
  const sum = (from: number, end?: number): number =>
    found.reduce((total, { sizes }) => total + sizes.slice(from, end).reduce((inShard, size) => inShard + size, 0), 0);
  const isComplete = found.every(({ hasFailedBatches }) => !hasBatchMembers || !hasFailedBatches);
  if (mark === null && (!isComplete || sum(0, 1) >= sum(1))) return undefined;
  return { mark: failureMark, partsIn: () => [{ index: failures, fromMs: 0 }] };
}
