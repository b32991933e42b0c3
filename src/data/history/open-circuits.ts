import type { Circuits } from '../queue/circuits.ts';
import type { Listing } from '../shard/index-pages.ts';
import type { DeliveryView } from '../shard/messages.ts';

/** Prefix of cursors of lists that walk the destinations with open circuits. */
const circuitMark = 'c';

/** Most destinations whose indexes are read, each a walk of its own; with more the index of the organization is read. */
const maxDestinations = 64;

/**
 * How a list is read whose members all wait for an open circuit: from the indexes of the destinations that have one, in the shards of these circuits;
 * undefined: from the index of the organization, because these are too many. `mark`: as of `failureWalk`. A list whose circuits become too many meanwhile
 * continues in that index, which has deliveries that failed over at their creation time: one may be listed twice.
 */
export async function openCircuitWalk(
  circuits: Pick<Circuits, 'brokenOf'>,
  { views }: Pick<Listing<DeliveryView>, 'views'>,
  { org, mark }: { org: string; mark: string | null },
): Promise<Pick<Listing<DeliveryView>, 'mark' | 'indexesIn' | 'views'> | undefined> {
  const broken = mark === '' ? null : await circuits.brokenOf(org, maxDestinations);
  if (broken === null) return undefined;
  const indexes = new Map<number, Set<string>>();
  for (const { shard, destinationId } of broken) indexes.set(shard, (indexes.get(shard) ?? new Set()).add(`i:${destinationId}`));
  return {
    mark: circuitMark,
    indexesIn: ({ shard }) => [...(indexes.get(shard) ?? [])],
    // One that has failed over is in the index of its first destination, too.
    views: async (shard, entries, walked) =>
      (await views(shard, entries, walked)).map((view) => (walked === `i:${view?.destinationId}` ? view : null)),
  };
}
