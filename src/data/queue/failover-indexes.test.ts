import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { FailoverQueues } from '../../../test/support/failover-queues.ts';
import { delivered, failure, settleAll } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessageReader } from '../history/message-reader.ts';
import type { Outcome } from './delivery-queue.ts';

const prefix = 'test:';
const shards = 2;
const failed: Outcome = { type: 'retry', attempt: failure, delayMs: 0 };

let redis: RedisServer;
let queues: FailoverQueues;
let reader: RedisMessageReader;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  queues = new FailoverQueues(redis.client, prefix, shards);
  reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => shards });
  await queues.begin();
});
afterEach(async () => {
  expect((await checkShards({ redis: redis.client, prefix, shards })).findings).toEqual([]);
});

const listed = async (destinationId: string): Promise<string[]> =>
  (await reader.deliveries('org_a', { destinationId }, { limit: 10 })).items.map(({ id }) => id);
const indexed = (shard: number, destinationId: string) => redis.client.zcard(`${queues.base(shard)}i:${destinationId}`);
const failures = () => redis.client.zcard(`${queues.base(0)}i:bad:org_a`);

async function pruneAll(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    for (let shard = 0; shard < shards; shard++) {
      while ((await queues.of(shard).prune({ finishedMs: -1000, deadLettersMs: -1000 })).hasMore);
      await queues.carry(shard);
    }
  }
}

describe.each([
  ['the same shard', 0],
  ['another shard', 1],
])('the indexes of a message that moves to a failover destination in %s', (_, shard) => {
  const spares = ['dst_b', 'dst_c'].map((id) => ({ id, shard }));

  async function atSpare(hasFailed: boolean): Promise<string> {
    await queues.send('dst_a', 0);
    const failover = { destinations: spares, afterAttempts: 1 };
    await settleAll(queues.of(0), 'w1', await queues.take(0, { failover }), delivered);
    const id = await queues.send('dst_a', 0);
    if (hasFailed) await settleAll(queues.of(0), 'w1', await queues.take(0), failed);
    else await queues.setCircuit(0, 'dst_a', 'open');
    const jobs = hasFailed ? [] : await queues.take(0);
    await queues.carry(0);
    await queues.put(shard, 'dst_b', { failover: { destinations: spares.slice(1), afterAttempts: 1 } });
    await settleAll(queues.of(shard), 'w1', jobs, { type: 'back' });
    return id;
  }

  test.each([
    ['after a failed attempt', true, 1],
    ['without an attempt', false, shard],
  ])('%s name it under both destinations, and as one that failed where that may be', async (_, hasFailed, expected) => {
    const id = await atSpare(hasFailed);
    await settleAll(queues.of(shard), 'w1', await queues.take(shard), delivered);
    expect(await reader.delivery('org_a', id)).toMatchObject({ status: 'delivered', destinationId: 'dst_b', failedOverFrom: 'dst_a' });
    expect(await listed('dst_a')).toContain(id);
    expect(await listed('dst_b')).toEqual([id]);
    expect([await indexed(shard, 'dst_b'), await failures()]).toEqual([1, expected]);
    await pruneAll();
    expect(await redis.client.keys(`${prefix}*i:*`)).toEqual([]);
  });

  test('and on to the next one name it there, and no more where it was', async () => {
    const id = await atSpare(true);
    await settleAll(queues.of(shard), 'w1', await queues.take(shard), failed);
    await queues.carry(shard);
    expect([await indexed(shard, 'dst_b'), await indexed(shard, 'dst_c')]).toEqual([0, 1]);
    await settleAll(queues.of(shard), 'w1', await queues.take(shard), delivered);
    expect([await listed('dst_b'), await listed('dst_c')]).toEqual([[], [id]]);
    await pruneAll();
    expect(await redis.client.keys(`${prefix}*i:*`)).toEqual([]);
  });

  test('and back name it only under the first one, and as one that failed', async () => {
    const id = await atSpare(true);
    await queues.put(shard, 'dst_b', { movesOn: 'all' });
    await queues.looks(1);
    expect(await reader.delivery('org_a', id)).toMatchObject({ destinationId: 'dst_a', failedOverFrom: null });
    expect([await indexed(shard, 'dst_b'), await failures()]).toEqual([0, 1]);
    expect([await listed('dst_a'), await listed('dst_b')]).toMatchObject([expect.arrayContaining([id]), []]);
  });

  test('and back, and is delivered by its first attempt, are gone with it', async () => {
    const id = await atSpare(false);
    await queues.setCircuit(0, 'dst_a', 'closed');
    await queues.put(shard, 'dst_b', { movesOn: 'all' });
    await settleAll(queues.of(0), 'w1', await queues.looks(2), delivered);
    expect(await reader.delivery('org_a', id)).toMatchObject({ attempts: 1, status: 'delivered', destinationId: 'dst_a' });
    await pruneAll();
    expect(await redis.client.keys(`${prefix}*i:*`)).toEqual([]);
  });

  test('and is delivered there at once without an attempt elsewhere are gone with it', async () => {
    const id = await atSpare(false);
    await settleAll(queues.of(shard), 'w1', await queues.take(shard), delivered);
    expect(await reader.delivery('org_a', id)).toMatchObject({ attempts: 1, status: 'delivered' });
    await pruneAll();
    expect(await redis.client.keys(`${prefix}*i:*`)).toEqual([]);
    expect(await reader.delivery('org_a', id)).toBeNull();
  });
});
