import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { failoverSuite } from '../../../test/support/failover-suite.ts';
import { delivered, failure, settleAll } from '../../../test/support/queue-worker.ts';
import type { Outcome } from './delivery-queue.ts';

const shards = 2;
const failed: Outcome = { type: 'retry', attempt: failure, delayMs: 0 };

const suite = failoverSuite({ shards });
const { prefix } = suite;

const listed = async (destinationId: string | string[]): Promise<string[]> =>
  (await suite.reader.deliveries('org_a', { destinationId }, { limit: 10 })).items.map(({ id }) => id);
const indexed = (shard: number, destinationId: string) => suite.redis.client.zcard(`${suite.queues.base(shard)}i:${destinationId}`);
const failures = () => suite.redis.client.zcard(`${suite.queues.base(0)}i:bad:org_a`);

async function pruneAll(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    for (let shard = 0; shard < shards; shard++) {
      while ((await suite.queues.of(shard).prune({ finishedMs: -1000, deadLettersMs: -1000 })).hasMore);
      await suite.queues.carry(shard);
    }
  }
}

describe.each([
  ['the same shard', 0],
  ['another shard', 1],
])('the indexes of a message that moves to a failover destination in %s', (_, shard) => {
  const spares = ['dst_b', 'dst_c'].map((id) => ({ id, shard }));

  async function atSpare(hasFailed: boolean): Promise<string> {
    await suite.queues.send('dst_a', 0);
    const failover = { destinations: spares, afterAttempts: 1 };
    await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0, { failover }), delivered);
    const id = await suite.queues.send('dst_a', 0);
    // It moves in another millisecond.
    await pause(2);
    if (hasFailed) await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0), failed);
    else await suite.queues.setCircuit(0, 'dst_a', 'open');
    const jobs = hasFailed ? [] : await suite.queues.take(0);
    await suite.queues.carry(0);
    await suite.queues.put(shard, 'dst_b', { failover: { destinations: spares.slice(1), afterAttempts: 1 } });
    await settleAll(suite.queues.of(shard), 'w1', jobs, { type: 'back' });
    return id;
  }

  test.each([
    ['after a failed attempt', true, 1],
    ['without an attempt', false, shard],
  ])('%s name it under both destinations, and as one that failed where that may be', async (_, hasFailed, expected) => {
    const id = await atSpare(hasFailed);
    await settleAll(suite.queues.of(shard), 'w1', await suite.queues.take(shard), delivered);
    expect(await suite.reader.delivery('org_a', id)).toMatchObject({
      status: 'delivered',
      destinationId: 'dst_b',
      failedOverFrom: 'dst_a',
    });
    expect(await listed('dst_a')).toContain(id);
    expect(await listed('dst_b')).toEqual([id]);
    expect((await listed(['dst_b', 'dst_a'])).toSorted()).toEqual((await listed('dst_a')).toSorted());
    expect([await indexed(shard, 'dst_b'), await failures()]).toEqual([1, expected]);
    await pruneAll();
    expect(await suite.redis.client.keys(`${prefix}*i:*`)).toEqual([]);
  });

  test('list it from its creation on and from its move on, by either destination that it had then', async () => {
    const id = await atSpare(true);
    const { createdAtMs = 0, failedOverAtMs = 0 } = (await suite.reader.delivery('org_a', id)) ?? {};
    const since = async (destinationId: string | string[], fromMs: number) =>
      (await suite.reader.deliveries('org_a', { destinationId, fromMs }, { limit: 10 })).items.filter((each) => each.id === id).length;
    const movedAtMs = failedOverAtMs ?? 0;
    expect(movedAtMs).toBeGreaterThan(createdAtMs);
    const both = ['dst_a', 'dst_b'];
    expect([await since(both, createdAtMs), await since('dst_a', createdAtMs), await since('dst_b', createdAtMs)]).toEqual([1, 1, 1]);
    expect([await since(both, movedAtMs), await since('dst_a', movedAtMs), await since('dst_b', movedAtMs)]).toEqual([1, 0, 1]);
    expect([await since(both, movedAtMs + 1), await since('dst_b', movedAtMs + 1)]).toEqual([0, 0]);
  });

  test('and on to the next one name it there, and no more where it was', async () => {
    const id = await atSpare(true);
    await settleAll(suite.queues.of(shard), 'w1', await suite.queues.take(shard), failed);
    await suite.queues.carry(shard);
    expect([await indexed(shard, 'dst_b'), await indexed(shard, 'dst_c')]).toEqual([0, 1]);
    await settleAll(suite.queues.of(shard), 'w1', await suite.queues.take(shard), delivered);
    expect([await listed('dst_b'), await listed('dst_c')]).toEqual([[], [id]]);
    await pruneAll();
    expect(await suite.redis.client.keys(`${prefix}*i:*`)).toEqual([]);
  });

  test('and back name it only under the first one, and as one that failed', async () => {
    const id = await atSpare(true);
    await suite.queues.put(shard, 'dst_b', { movesOn: 'all' });
    await suite.queues.looks(1);
    expect(await suite.reader.delivery('org_a', id)).toMatchObject({ destinationId: 'dst_a', failedOverFrom: null });
    expect([await indexed(shard, 'dst_b'), await failures()]).toEqual([0, 1]);
    expect([await listed('dst_a'), await listed('dst_b')]).toMatchObject([expect.arrayContaining([id]), []]);
  });

  test('and back, and is delivered by its first attempt, are gone with it', async () => {
    const id = await atSpare(false);
    await suite.queues.setCircuit(0, 'dst_a', 'closed');
    await suite.queues.put(shard, 'dst_b', { movesOn: 'all' });
    await settleAll(suite.queues.of(0), 'w1', await suite.queues.looks(2), delivered);
    expect(await suite.reader.delivery('org_a', id)).toMatchObject({ attempts: 1, status: 'delivered', destinationId: 'dst_a' });
    await pruneAll();
    expect(await suite.redis.client.keys(`${prefix}*i:*`)).toEqual([]);
  });

  test('and is delivered there at once without an attempt elsewhere are gone with it', async () => {
    const id = await atSpare(false);
    await settleAll(suite.queues.of(shard), 'w1', await suite.queues.take(shard), delivered);
    expect(await suite.reader.delivery('org_a', id)).toMatchObject({ attempts: 1, status: 'delivered' });
    await pruneAll();
    expect(await suite.redis.client.keys(`${prefix}*i:*`)).toEqual([]);
    expect(await suite.reader.delivery('org_a', id)).toBeNull();
  });
});
