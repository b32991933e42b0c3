import { afterAll, afterEach, beforeAll, beforeEach, expect } from '@jest/globals';
import { checkShards } from '../../src/data/check/shard-check.ts';
import { RedisMessageReader } from '../../src/data/history/message-reader.ts';
import { FailoverQueues } from './failover-queues.ts';
import { type RedisServer, startRedis } from './redis.ts';

const prefix = 'test:';

/** What the tests of a suite about failover between shards share. Redis is emptied before each test. */
export interface FailoverSuite {
  readonly prefix: string;
  readonly redis: RedisServer;
  /** The queues of this test. */
  readonly queues: FailoverQueues;
  readonly reader: RedisMessageReader;
}

/** Registers the hooks of the suite that calls it. After each test the check of the shards has no findings. */
export function failoverSuite({ shards = 2 } = {}): FailoverSuite {
  let redis: RedisServer;
  let queues: FailoverQueues;
  let reader: RedisMessageReader;
  beforeAll(async () => {
    redis = await startRedis();
    reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => shards });
  });
  afterAll(() => redis.stop());
  beforeEach(async () => {
    queues = new FailoverQueues(redis.client, prefix, shards);
    await queues.begin();
  });
  afterEach(async () => {
    expect((await checkShards({ redis: redis.client, prefix, shards })).findings).toEqual([]);
  });
  return {
    prefix,
    get redis() {
      return redis;
    },
    get queues() {
      return queues;
    },
    get reader() {
      return reader;
    },
  };
}
