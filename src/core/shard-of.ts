import { createHash } from 'node:crypto';

/** The shard that belongs to an id: stable for it, even over the shards. */
export function shardOf(id: string, shards: number): number {
  return createHash('sha256').update(id).digest().readUInt32BE(0) % shards;
}
