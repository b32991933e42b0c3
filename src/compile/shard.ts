import { createHash } from 'node:crypto';

/** The shard where a new destination's targets are put: stable for the id, even over the shards. */
export function shardOf(destinationId: string, shards: number): number {
  return createHash('sha256').update(destinationId).digest().readUInt32BE(0) % shards;
}
