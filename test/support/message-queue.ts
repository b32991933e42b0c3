import { RedisMessageReader } from '../../src/data/history/message-reader.ts';
import { RedisMessageAcceptor } from '../../src/data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { patientClock } from './patient-clock.ts';
import { type RedisServer, startRedis } from './redis.ts';

export interface MessageQueue {
  redis: RedisServer;
  queue: RedisDeliveryQueue;
  acceptor: RedisMessageAcceptor;
  reader: RedisMessageReader;
  /** Empties Redis; the worker `w1` is known again. */
  reset(): Promise<void>;
}

/** Messages of one shard on a Redis of their own. */
export async function startMessageQueue(prefix: string): Promise<MessageQueue> {
  const redis = await startRedis();
  const options = { redis: redis.client, prefix };
  const queue = new RedisDeliveryQueue(options);
  return {
    redis,
    queue,
    acceptor: new RedisMessageAcceptor({ ...options, clock: patientClock }),
    reader: new RedisMessageReader(options),
    reset: async () => {
      await redis.client.flushall();
      await queue.tend('w1', 64);
    },
  };
}
