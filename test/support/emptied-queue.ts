import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import type { RedisClient } from '../../src/redis/connection.ts';

/** The queue of the first shard of a facade world, without what an earlier test has left there, with the worker `w1`. */
export async function emptiedQueue({ redis }: { redis: { client: RedisClient } }): Promise<RedisDeliveryQueue> {
  const keys = await redis.client.keys('test:{s0}:*');
  if (keys.length > 0) await redis.client.del(keys);
  const queue = new RedisDeliveryQueue({ redis: redis.client, prefix: 'test:' });
  await queue.refreshShard('w1', 1000);
  return queue;
}
