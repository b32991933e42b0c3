import { maxGathered } from '../shard/index-pages.ts';
import { recordId } from '../shard/record-key.ts';
import type { ShardReader } from '../shard/shard-reader.ts';
import type { MessageLocation } from './message-view.ts';

/**
 * Messages that one read of each shard finds, each once, with the shard where it was found. Null where a read is incomplete, or all together are
 * too many to be read for one page.
 */
export async function fewMessages(
  shards: readonly ShardReader[],
  look: (shard: ShardReader) => Promise<string[] | null>,
): Promise<MessageLocation[] | null> {
  const keys = await Promise.all(shards.map(look));
  if (keys.includes(null)) return null;
  const found = new Map<string, MessageLocation>();
  for (const [i, { shard }] of shards.entries())
    for (const key of keys[i] ?? []) {
      const id = recordId('msg_', shard, key);
      found.set(id, { id, shard });
    }
  return found.size > maxGathered ? null : [...found.values()];
}
