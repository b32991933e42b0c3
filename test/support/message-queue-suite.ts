import { afterAll, afterEach, beforeAll, beforeEach, expect } from '@jest/globals';
import { checkShards } from '../../src/data/check/shard-check.ts';
import { RedisMessageReader } from '../../src/data/history/message-reader.ts';
import { RedisMessageAcceptor } from '../../src/data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { lenientClock } from './lenient-clock.ts';
import { type RedisServer, startRedis } from './redis.ts';

/** What the tests of a suite about the messages of one shard share. Redis is emptied before each test, and the worker `w1` is known. */
export interface MessageQueueSuite {
  readonly redis: RedisServer;
  readonly queue: RedisDeliveryQueue;
  readonly acceptor: RedisMessageAcceptor;
  readonly reader: RedisMessageReader;
}

/** Registers the hooks of the suite that calls it. */
export function messageQueueSuite(prefix: string): MessageQueueSuite {
  let started: MessageQueueSuite;
  beforeAll(async () => {
    const redis = await startRedis();
    const options = { redis: redis.client, prefix };
    started = {
      redis,
      queue: new RedisDeliveryQueue(options),
      acceptor: new RedisMessageAcceptor({ ...options, clock: lenientClock }),
      reader: new RedisMessageReader(options),
    };
  });
  afterAll(() => started.redis.stop());
  beforeEach(async () => {
    await started.redis.client.flushall();
    await started.queue.refreshShard('w1', 64);
  });
  return {
    get redis() {
      return started.redis;
    },
    get queue() {
      return started.queue;
    },
    get acceptor() {
      return started.acceptor;
    },
    get reader() {
      return started.reader;
    },
  };
}

/** The same, with a check of the shard after each test, which must have no findings. */
export function checkedMessageQueueSuite(prefix: string): MessageQueueSuite {
  const suite = messageQueueSuite(prefix);
  afterEach(async () => {
    expect((await checkShards({ redis: suite.redis.client, prefix, shards: 1 })).findings).toEqual([]);
  });
  return suite;
}
