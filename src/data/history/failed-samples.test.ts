import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { dead, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import { RedisMessageReader } from './message-reader.ts';

const prefix = 'test:';
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

test('failed samples of a route come from all shards, the newest first, and only of its organization', async () => {
  const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  const failed: string[] = [];
  for (const shard of [0, 1, 2, 0, 1, 2, 1]) {
    const { id, targets, ...event } = newEvent();
    const inShard = (given: string) => given.slice(0, 4) + shard.toString().padStart(2, '0') + given.slice(6);
    const placed = targets.map((target) => ({ ...target, destinationId: `dst_${shard}`, messageId: inShard(target.messageId), shard }));
    await acceptor.accept({ ...event, id: inShard(id), targets: placed });
    const queue = new RedisDeliveryQueue({ redis: redis.client, prefix, shard });
    await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 1), dead);
    failed.unshift(placed[0]?.messageId ?? '');
    // Two of the same millisecond have no order between shards.
    const ms = Date.now();
    while (Date.now() === ms);
  }
  const reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => 3 });
  const samples = await reader.failedSamples('org_a', 'rte_a', { limit: 5, payloadBytes: 3 });
  expect(samples.map(({ delivery }) => delivery.id)).toEqual(failed.slice(0, 5));
  expect(samples[0]?.event).toMatchObject({ payload: Buffer.from('{"a'), size: 7 });
  expect(await reader.failedSamples('org_b', 'rte_a', { limit: 5, payloadBytes: 3 })).toEqual([]);
});
