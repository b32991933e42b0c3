import { recordKey } from '../shard/record-key.ts';
import type { ShardReader } from '../shard/shard-reader.ts';
import type { MessageLocation } from './message-view.ts';

/** A message may move during the search. */
const maxMoves = 4;

/**
 * Reads messages wherever they have moved. `take` gets the data of each shard about a message, the last shard last, and returns the shard to which the message has
 * moved on; null: it is here.
 */
export async function followMessages<R>(
  inShard: (shard: number) => ShardReader,
  places: readonly MessageLocation[],
  read: (reader: ShardReader, keys: readonly string[]) => Promise<readonly R[]>,
  take: (place: MessageLocation & { key: string }, reply: NonNullable<R>) => number | null,
): Promise<void> {
  let open = places;
  for (let moves = 0; moves < maxMoves && open.length > 0; moves++) {
    const next: MessageLocation[] = [];
    for (const { reply, ...place } of await perShard(inShard, open, read)) {
      if (reply === null || reply === undefined) continue;
      const elsewhere = take(place, reply);
      if (elsewhere !== null) next.push({ id: place.id, shard: elsewhere });
    }
    open = next;
  }
}

async function perShard<R>(
  inShard: (shard: number) => ShardReader,
  places: readonly MessageLocation[],
  read: (reader: ShardReader, keys: readonly string[]) => Promise<readonly R[]>,
): Promise<{ id: string; shard: number; key: string; reply: R | undefined }[]> {
  const byShard = Map.groupBy(places, ({ shard }) => shard);
  const replies = await Promise.all(
    [...byShard].map(async ([shard, group]) => {
      const keyed = group.flatMap(({ id }) => {
        const key = recordKey(id, shard);
        return key === null ? [] : [{ id, shard, key }];
      });
      const answers = await read(
        inShard(shard),
        keyed.map(({ key }) => key),
      );
      return keyed.map((each, i) => ({ ...each, reply: answers[i] }));
    }),
  );
  return replies.flat();
}
