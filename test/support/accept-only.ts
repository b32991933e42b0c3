import { wholePayloadBytes } from '../../src/core/payload-sizes.ts';
import { acceptArguments } from '../../src/data/queue/accept-batch.ts';
import { ByteShares } from '../../src/data/queue/byte-shares.ts';
import type { NewEvent } from '../../src/data/shard/messages.ts';
import { PayloadChunks } from '../../src/data/shard/payload-chunks.ts';
import { homeShard } from '../../src/data/shard/record-key.ts';
import { shardKeys } from '../../src/data/shard/shard-keys.ts';
import { ShardScript } from '../../src/data/shard/shard-script.ts';
import type { RedisClient } from '../../src/redis/connection.ts';
import { lenientClock } from './lenient-clock.ts';

const acceptScript = new ShardScript(new URL('../../src/data/queue/accept.lua', import.meta.url));

/** Stores an event as an accepting process does that dies before it carries anything to other shards. */
export async function acceptOnly(redis: RedisClient, prefix: string, event: NewEvent): Promise<void> {
  const shard = homeShard(event.id) ?? 0;
  await new ByteShares({ redis, prefix, clock: lenientClock, shards: () => 1 }).refresh(shard);
  const isLarge = event.payload.length > wholePayloadBytes;
  const chunked = isLarge ? await new PayloadChunks({ redis, prefix }).write(shard, event.payload) : null;
  const { args } = acceptArguments(isLarge ? { ...event, payload: Buffer.alloc(0) } : event, shard, chunked);
  await acceptScript.run(redis, shardKeys(prefix, shard).declared, [1, ...args]);
}
