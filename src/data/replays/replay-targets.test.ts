import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { crashAtEveryCommand } from '../../../test/support/crashing-client.ts';
import { dead, failure } from '../../../test/support/queue-worker.ts';
import { carryOn, replayRecord, startReplayWorld } from '../../../test/support/replays.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { checkShards } from '../check/shard-check.ts';
import { OutboxCarrier } from '../queue/outbox-carrier.ts';

const prefix = 'test:';
let world: Awaited<ReturnType<typeof startReplayWorld>>;

beforeAll(async () => {
  world = await startReplayWorld(prefix);
});
afterAll(() => world.redis.stop());
beforeEach(() => world.empty());

const to = (shard: number) => ({ shard, isEnabled: true, isOrdered: false, isRouteEnabled: async () => true });

test('messages for a target that forms batches wait for theirs', async () => {
  await world.endedMessages([0, 0, 0]);
  const batch = { records: 1000, bytes: 5_000_000, ageMs: 60_000, layout: '{}' };
  await world.configure(0, { revision: '2', batch });
  expect(await carryOn(world.parts().steps, replayRecord())).toBe('idle');
  expect(await world.redis.client.xlen(`${prefix}{s0}:w:1`)).toBe(3);
  expect(await world.redis.client.exists(`${prefix}{s0}:w:1r`)).toBe(0);
  await world.configure(0, { revision: '3', batch: { ...batch, ageMs: 0 } });
  const [job] = (await world.queues[0]?.dequeue('w1', 10))?.jobs ?? [];
  expect(job?.isBatch).toBe(true);
});

test('originals of a target that sends in order are skipped with a reason, and those of others are not', async () => {
  await world.endedMessages([0, 1, 0]);
  await world.configure(0, { revision: '2', inOrder: true });
  const { steps } = world.parts();
  const record = replayRecord();
  while ((await carryOn(steps, record)) !== 'ended') await world.endAll();
  expect(await world.runOf(record)).toMatchObject({ phase: 'Succeeded', queued: 1, delivered: 1, skipped: { target_ordered: 2 } });
});

describe('a replay to another destination', () => {
  test('a replay to another destination skips all originals when that sends in order', async () => {
    await world.endedMessages([0, 1]);
    const record = replayRecord({ destinationId: 'dst_other' });
    expect(await carryOn(world.parts().steps, record, { elsewhere: { ...to(1), isOrdered: true } })).toBe('ended');
    expect(await world.runOf(record)).toMatchObject({ phase: 'Succeeded', queued: 0, skipped: { target_ordered: 2 } });
    expect(await world.replays()).toEqual([]);
  });

  test.each([0, 1])(
    'a replay to another destination sends all there, from any shard to shard %s, and no failover takes them further',
    async (shard) => {
      const originals = await world.endedMessages([0, 1, 0]);
      const record = replayRecord({ destinationId: 'dst_other' });
      const { steps } = world.parts();
      const elsewhere = to(shard);
      expect(await carryOn(steps, record, { elsewhere })).toBe('idle');
      const moved = await world.replays();
      expect(moved.map(({ replayedFrom }) => replayedFrom).sort()).toEqual(originals.sort());
      expect(moved.map(({ routeId, destinationId, status }) => [routeId, destinationId, status])).toEqual(
        moved.map(() => ['rte_a', 'dst_other', 'pending']),
      );
      const failover = { destinations: [{ id: `dst_${shard}`, shard }], afterAttempts: 1 };
      await world.endAll({ type: 'retry', attempt: failure, delayMs: 0 }, { failover });
      expect((await world.replays()).map(({ destinationId, status }) => [destinationId, status])).toEqual(
        moved.map(() => ['dst_other', 'retrying']),
      );
      for (const queue of world.queues) await queue.promote();
      while ((await carryOn(steps, record, { elsewhere })) !== 'ended') await world.endAll(dead);
      expect(await world.runOf(record)).toMatchObject({ phase: 'Succeeded', queued: 3, delivered: 0, failed: 3 });
      expect((await checkShards({ redis: world.redis.client, prefix, shards: world.shards })).findings).toEqual([]);
    },
  );

  test('a replay to another destination is completed with exact counts when its process dies after any of its commands', async () => {
    const record = replayRecord({ destinationId: 'dst_other' });
    const elsewhere = to(1);
    const toTheEndOf = async (client: RedisClient = world.redis.client) => {
      const { steps } = world.parts(client);
      while ((await carryOn(steps, record, { elsewhere, most: 2 })) !== 'ended') {
        // As workers do with what a dead process has left in the outbox.
        for (const shard of [0, 1]) await new OutboxCarrier({ redis: world.redis.client, prefix }).carry(shard);
        await world.endAll();
      }
    };
    await crashAtEveryCommand(world.redis.client, 'after', {
      prepare: async () => {
        await world.empty();
        await world.endedMessages([0, 1, 0]);
      },
      work: toTheEndOf,
      look: async () => {
        await toTheEndOf();
        expect(await world.runOf(record)).toMatchObject({ phase: 'Succeeded', queued: 3, skipped: {}, delivered: 3, failed: 0 });
        expect((await world.replays()).map(({ destinationId }) => destinationId)).toEqual(['dst_other', 'dst_other', 'dst_other']);
        expect((await checkShards({ redis: world.redis.client, prefix, shards: world.shards })).findings).toEqual([]);
      },
    });
  });

  test('a replay to another destination waits while that is disabled or not there, and while its circuit is open', async () => {
    await world.endedMessages([0]);
    const record = replayRecord({ destinationId: 'dst_other' });
    const { steps } = world.parts();
    const waiting = async () => (await world.runOf(record))?.waiting;
    expect(await carryOn(steps, record, { elsewhere: null })).toBe('idle');
    expect(await waiting()).toMatchObject({ reason: 'TargetDisabled', message: 'Destination dst_other does not exist.' });
    expect(await carryOn(steps, record, { elsewhere: { ...to(1), isEnabled: false } })).toBe('idle');
    expect(await waiting()).toMatchObject({ reason: 'TargetDisabled', message: 'Destination dst_other is disabled.' });
    expect(await carryOn(steps, record, { elsewhere: { ...to(1), isRouteEnabled: async () => false } })).toBe('idle');
    expect(await waiting()).toMatchObject({ reason: 'TargetDisabled', message: 'Route rte_a is disabled.' });
    expect(await world.replays()).toEqual([]);
    while ((await carryOn(steps, record, { elsewhere: to(1) })) !== 'ended') await world.endAll();
    expect(await world.runOf(record)).toMatchObject({ phase: 'Succeeded', queued: 1, delivered: 1, waiting: null });
  });
});
