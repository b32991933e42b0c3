import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { dieEverywhere } from '../../../test/support/dying-client.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { completeCounters } from './complete-counters.ts';
import { RedisMessageReader } from './message-reader.ts';

const prefix = 'test:';
const shards = 2;
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(() => redis.client.flushall());

const complete = (client: RedisClient = redis.client) => completeCounters({ redis: client, prefix, shards });
const counters = (shard: number, org: string) => `${prefix}{s${shard}}:k:${org}`;

/** What earlier releases have counted: for organizations, for their alerts and for their webhooks. */
async function countedBefore(): Promise<void> {
  await redis.client.hset(`${prefix}{cfg}:rec:organization`, 'org_a', '{}');
  await redis.client.hset(counters(0, 'org_a'), { dst_a: '4 3 100 1700', dst_b: '2 2 30 1800 5', src_a: '9 1700' });
  await redis.client.hset(counters(1, 'org_a'), { dst_a: '1 0 50 1900' });
  await redis.client.hset(counters(1, '~org_a'), { nch_a: '7 7 70 1700' });
  await redis.client.hset(counters(0, '+org_a'), { ep_a: '3 1 10 1700', 'total:app_a': '3 1 0 0' });
}

test('counters without attempts get one for each delivery, and others stay', async () => {
  await countedBefore();
  expect(await complete()).toBe(5);
  expect(await redis.client.hgetall(counters(0, 'org_a'))).toEqual({ dst_a: '4 3 100 1700 4', dst_b: '2 2 30 1800 5', src_a: '9 1700' });
  expect(await redis.client.hgetall(counters(1, 'org_a'))).toEqual({ dst_a: '1 0 50 1900 1' });
  expect(await redis.client.hgetall(counters(1, '~org_a'))).toEqual({ nch_a: '7 7 70 1700 7' });
  expect(await redis.client.hgetall(counters(0, '+org_a'))).toEqual({ ep_a: '3 1 10 1700 3', 'total:app_a': '3 1 0 0 3' });
  expect(await complete()).toBe(0);
});

test('what is read of them is the same before and after', async () => {
  await countedBefore();
  const messages = new RedisMessageReader({ redis: redis.client, prefix, shards: () => shards });
  const before = await messages.destinationCounters('org_a', 'dst_a');
  expect(before).toEqual({ deliveries: 5, successes: 3, averageLatencyMs: 30, lastDeliveryAtMs: 1900 });
  await complete();
  expect(await messages.destinationCounters('org_a', 'dst_a')).toEqual(before);
});

test('wherever the process dies, the next one completes the rest', async () => {
  await dieEverywhere(redis.client, 'after', {
    prepare: async () => {
      await redis.client.flushall();
      await countedBefore();
    },
    work: (client) => complete(client),
    look: async () => {
      expect(await complete()).toBeLessThanOrEqual(5);
      const values = await Promise.all(['org_a', '~org_a', '+org_a'].map((org) => redis.client.hvals(counters(1, org))));
      for (const value of values.flat()) expect(value).toMatch(/^\d+( \d+){4}$/);
    },
  });
});
