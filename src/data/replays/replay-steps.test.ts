import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { allPages } from '../../../test/support/all-pages.ts';
import { type CrashMoment, crashAtEveryCommand } from '../../../test/support/crashing-client.ts';
import { dead, delivered } from '../../../test/support/queue-worker.ts';
import { carryOn, replayRecord, startReplayWorld } from '../../../test/support/replays.ts';
import { RedisUnavailableError } from '../../core/redis-unavailable-error.ts';
import type { ReplayRecord } from '../../core/replay-record.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessageCanceller } from '../history/message-canceller.ts';
import { intakeKeys } from '../intake/intake-keys.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import { ByteShares } from '../queue/byte-shares.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { maxRunningReplays } from './redis-replay-runs.ts';
import { maxWaitingAtTarget } from './replay-queueing.ts';

const prefix = 'test:';
const org = 'org_a';
const keys = intakeKeys(prefix, org);
let world: Awaited<ReturnType<typeof startReplayWorld>>;

beforeAll(async () => {
  world = await startReplayWorld(prefix);
});
afterAll(() => world.redis.stop());
beforeEach(() => world.empty());

const everything = () => allPages((page) => world.reader.deliveries(org, {}, page), 100);

describe('a replay', () => {
  test('replays each original once, to the lane of retries, and ends with all that it has queued', async () => {
    const originals = await world.endedMessages([0, 1, 0, 0]);
    const others = await world.endedMessages([1, 1], delivered);
    const record = replayRecord();
    expect(await carryOn(world.parts().steps, record)).toBe('idle');
    expect(await world.runOf(record)).toMatchObject({
      phase: 'Running',
      plan: { candidates: 4, isEstimate: false, bytes: 4 * '{"a":1}'.length, targets: 2 },
      queued: 4,
      delivered: 0,
      queuedAtMs: expect.any(Number),
      endedAtMs: null,
    });
    expect((await world.replays()).map(({ replayedFrom }) => replayedFrom).sort()).toEqual(originals.sort());
    expect(await world.redis.client.exists(`${prefix}{s0}:w:1r`)).toBe(1);
    expect(await world.redis.client.exists(`${prefix}{s0}:w:1`)).toBe(0);
    await world.toTheEnd(record);
    expect(await world.runOf(record)).toMatchObject({
      phase: 'Succeeded',
      queued: 4,
      skipped: {},
      delivered: 4,
      failed: 0,
      endedOtherwise: 0,
    });
    expect(await everything()).toHaveLength(originals.length + others.length + 4);
    expect(await world.redis.client.smembers(keys.runningReplays)).toEqual([]);
    expect(await world.redis.client.exists(keys.openOfReplay(record.identity))).toBe(0);
    expect(await carryOn(world.parts().steps, record)).toBe('ended');
    expect(await carryOn(world.parts().steps, { ...record, uid: 'uid_of_another_object' })).toBe('ended');
    expect(await world.replays()).toHaveLength(4);
    expect((await checkShards({ redis: world.redis.client, prefix, shards: world.shards })).findings).toEqual([]);
  });

  test('replays each original once when its pages are read ahead', async () => {
    const originals = await world.endedMessages(Array.from({ length: 230 }, (_, i) => i % 2));
    const record = replayRecord();
    await world.toTheEnd(record, delivered, { most: 70 });
    expect(await world.runOf(record)).toMatchObject({ phase: 'Succeeded', queued: 230, delivered: 230, skipped: {} });
    expect((await world.replays()).map(({ replayedFrom }) => replayedFrom).sort()).toEqual(originals.sort());
  });

  test('a replay counts how its messages end while more of them are queued', async () => {
    await world.endedMessages([0, 1, 0, 1, 0]);
    const record = replayRecord();
    const { steps } = world.parts();
    const queued = async (count: number): Promise<void> => {
      while (((await world.runOf(record))?.queued ?? 0) < count) await steps.advance(record, { most: 1, monthlyMessages: null });
    };
    await queued(1);
    await world.endAll();
    await queued(2);
    await world.endAll(dead);
    await queued(3);
    const [{ id = '' } = {}] = (await world.replays()).filter(({ completedAtMs }) => completedAtMs === null);
    const canceller = new RedisMessageCanceller({ redis: world.redis.client, prefix, shards: () => world.shards });
    expect((await canceller.cancel(org, [id], 'ann')).get(id)).toBe('cancelled');
    await queued(4);
    expect(await world.runOf(record)).toMatchObject({ queuedAtMs: null, delivered: 1, failed: 1, endedOtherwise: 1 });
    await world.toTheEnd(record);
    expect(await world.runOf(record)).toMatchObject({ phase: 'Succeeded', queued: 5, delivered: 3, failed: 1, endedOtherwise: 1 });
  });

  test.each<CrashMoment>(['before', 'after'])(
    'is completed with exact counts by another process when its own dies %s any of its commands',
    async (moment) => {
      const record = replayRecord();
      const monthlyMessages = 100;
      let originals: string[] = [];
      await crashAtEveryCommand(world.redis.client, moment, {
        prepare: async () => {
          await world.empty();
          originals = await world.endedMessages([0, 1, 0]);
        },
        work: async (client) => {
          const { steps } = world.parts(client);
          while ((await carryOn(steps, record, { monthlyMessages, most: 2 })) !== 'ended') await world.endAll();
        },
        look: async () => {
          const { steps } = world.parts();
          while ((await carryOn(steps, record, { monthlyMessages, most: 2 })) !== 'ended') await world.endAll();
          expect(await world.runOf(record)).toMatchObject({
            phase: 'Succeeded',
            queued: 3,
            skipped: {},
            delivered: 3,
            failed: 0,
            endedOtherwise: 0,
          });
          expect((await world.replays()).map(({ replayedFrom }) => replayedFrom).sort()).toEqual(originals.sort());
          expect((await world.redis.client.hvals(keys.quota)).map(Number)).toEqual([3]);
        },
      });
    },
  );

  test('a replay that is a dry run finds what the replay then queues, and queues nothing', async () => {
    await world.endedMessages([0, 1, 0]);
    const dry = replayRecord({ isDryRun: true, identity: 'identity_dry' });
    expect(await carryOn(world.parts().steps, dry)).toBe('ended');
    expect(await world.replays()).toEqual([]);
    const record = replayRecord();
    await world.toTheEnd(record);
    const planned = (await world.runOf(dry))?.plan;
    expect(await world.runOf(dry)).toMatchObject({ phase: 'Succeeded', queued: 0 });
    expect(planned).toMatchObject({ candidates: (await world.runOf(record))?.queued, isEstimate: false });
    expect(planned).toEqual((await world.runOf(record))?.plan);
  });

  test('a replay takes only what its filter selects, of what there was when it began', async () => {
    const [, second = ''] = await world.endedMessages([0, 0, 1]);
    const record = replayRecord({ filter: { statuses: ['dlq'], ids: [second] } });
    await world.toTheEnd(record, dead);
    expect((await world.replays()).map(({ replayedFrom }) => replayedFrom)).toEqual([second]);
    expect(await world.runOf(record)).toMatchObject({ phase: 'Succeeded', queued: 1, delivered: 0, failed: 1 });
    // The replay of the replay is a dead letter from after the beginning.
    const all = replayRecord({ identity: 'identity_all', filter: { statuses: ['dlq'], routeId: 'rte_a' } });
    await world.toTheEnd(all);
    expect(await world.runOf(all)).toMatchObject({ phase: 'Succeeded', queued: 4, delivered: 4 });
  });

  test('a replay counts what was cancelled neither as delivered nor as failed', async () => {
    await world.endedMessages([0, 1]);
    const record = replayRecord();
    await carryOn(world.parts().steps, record);
    const [{ id = '' } = {}] = await world.replays();
    const canceller = new RedisMessageCanceller({ redis: world.redis.client, prefix, shards: () => world.shards });
    expect((await canceller.cancel(org, [id], 'ann')).get(id)).toBe('cancelled');
    await world.toTheEnd(record);
    expect(await world.runOf(record)).toMatchObject({ phase: 'Succeeded', queued: 2, delivered: 1, failed: 0, endedOtherwise: 1 });
  });

  test('a replay fails with the complaint about a filter that cannot be evaluated', async () => {
    const record = replayRecord({ filter: { statuses: ['dlq'], where: 'payload.a ==' } });
    await world.endedMessages([0]);
    expect(await carryOn(world.parts().steps, record)).toBe('ended');
    expect(await world.runOf(record)).toMatchObject({
      phase: 'Failed',
      failure: { reason: 'InvalidFilter', message: expect.stringContaining('where') },
    });
  });

  test('a replay that is suspended queues nothing more and counts what ends; resumed, it continues', async () => {
    await world.endedMessages([0, 0, 0]);
    const record = replayRecord();
    const { steps } = world.parts();
    while (((await world.runOf(record))?.queued ?? 0) === 0) await steps.advance(record, { most: 1, monthlyMessages: null });
    const suspended = { ...record, isSuspended: true, generation: 2 };
    await world.endAll();
    expect(await carryOn(steps, suspended)).toBe('idle');
    expect(await world.runOf(record)).toMatchObject({ phase: 'Running', queued: 1, delivered: 1 });
    await world.toTheEnd(record);
    expect(await world.runOf(record)).toMatchObject({ phase: 'Succeeded', queued: 3, delivered: 3 });
  });

  test.each<[string, (record: ReplayRecord) => ReplayRecord]>([
    ['is cancelled', (record) => ({ ...record, isCancelled: true, generation: 2 })],
    ['is made again while it runs', (record) => ({ ...record, uid: 'uid_b' })],
  ])('a replay that %s queues nothing more, and what was counted for the rest is given back', async (_, changed) => {
    await world.endedMessages([0, 0, 0]);
    const record = replayRecord();
    const { steps } = world.parts();
    while (((await world.runOf(record))?.queued ?? 0) === 0) await steps.advance(record, { most: 2, monthlyMessages: 10 });
    // The last record is counted, and not yet queued.
    await world.configure(0, { revision: '2', paused: true });
    expect(await carryOn(steps, record, { monthlyMessages: 10 })).toBe('idle');
    expect((await world.redis.client.hvals(keys.quota)).map(Number)).toEqual([3]);
    expect(await carryOn(steps, changed(record))).toBe('ended');
    expect(await world.runOf(record)).toMatchObject({ phase: 'Cancelled', queued: 2, waiting: null });
    expect((await world.redis.client.hvals(keys.quota)).map(Number)).toEqual([2]);
    expect(await world.replays()).toHaveLength(2);
  });

  test('a replay whose object is gone is cancelled, and gives its place back', async () => {
    await world.endedMessages([0]);
    const { steps } = world.parts();
    expect(await carryOn(steps, replayRecord())).toBe('idle');
    await steps.endGone(org, 'w1', async (id, identity) => id === 'rep_a' && identity === 'identity_a');
    expect(await world.runOf(replayRecord())).toMatchObject({ phase: 'Running' });
    await steps.endGone(org, 'w1', async () => false);
    expect(await world.runOf(replayRecord())).toMatchObject({ phase: 'Cancelled' });
    expect(await world.redis.client.smembers(keys.runningReplays)).toEqual([]);
  });

  test('a replay fails when too many of its messages have failed, once a hundred have ended', async () => {
    await world.endedMessages(Array.from({ length: 110 }, () => 0));
    const record = replayRecord({ stopAfterFailurePercent: 50 });
    const { steps } = world.parts();
    while (((await world.runOf(record))?.queued ?? 0) < 99) await steps.advance(record, { most: 33, monthlyMessages: null });
    await world.endAll(dead);
    await steps.advance(record, { most: 0, monthlyMessages: null });
    expect(await world.runOf(record)).toMatchObject({ phase: 'Running', failed: 99 });
    await steps.advance(record, { most: 1, monthlyMessages: null });
    await world.endAll(dead);
    expect(await carryOn(steps, record)).toBe('ended');
    expect(await world.runOf(record)).toMatchObject({
      phase: 'Failed',
      failure: { reason: 'TooManyFailures', message: '100 of 100 messages have failed: more than 50 %.' },
    });
  });
});

describe('a replay waits, says why, and continues', () => {
  const waiting = async () => (await world.runOf(replayRecord()))?.waiting;

  test('a replay waits, says why, and continues while the target is disabled', async () => {
    await world.endedMessages([0]);
    await world.configure(0, { revision: '2', paused: true });
    expect(await carryOn(world.parts().steps, replayRecord())).toBe('idle');
    expect(await waiting()).toMatchObject({ reason: 'TargetDisabled', message: 'dst_0 or rte_a is disabled or not in force.' });
    expect(await world.replays()).toEqual([]);
    await world.configure(0, { revision: '3' });
    await world.toTheEnd(replayRecord());
    expect(await world.runOf(replayRecord())).toMatchObject({ phase: 'Succeeded', queued: 1, delivered: 1, waiting: null });
  });

  test.each([
    ['disabled', { paused: true }, { reason: 'TargetDisabled', message: 'dst_0 or rte_a is disabled or not in force.' }],
    ['disabled, and another one is not', { paused: true }, null],
  ])('a replay waits, says why, and continues while the target of all that it has queued is %s', async (_, changes, expected) => {
    await world.endedMessages(expected === null ? [0, 1] : [0]);
    const { steps } = world.parts();
    expect(await carryOn(steps, replayRecord())).toBe('idle');
    expect(await world.runOf(replayRecord())).toMatchObject({ queuedAtMs: expect.any(Number), waiting: null });
    await world.configure(0, { revision: '2', ...changes });
    expect(await carryOn(steps, replayRecord())).toBe('idle');
    expect((await waiting()) ?? null).toEqual(expected === null ? null : expect.objectContaining(expected));
    await world.configure(0, { revision: '3' });
    expect(await carryOn(steps, replayRecord())).toBe('idle');
    expect(await waiting()).toBeNull();
    await world.toTheEnd(replayRecord());
    expect(await world.runOf(replayRecord())).toMatchObject({ phase: 'Succeeded', waiting: null });
  });

  test('a replay waits, says why, and continues while the circuit is open; after its cooldown it queues what probes need', async () => {
    const fragile = { circuit: { failureThreshold: 1, cooldownSeconds: 60, probeSuccessThreshold: 2 } };
    await world.endedMessages([0, 0, 0], dead, fragile);
    expect(await world.redis.client.hget(shardKeys(prefix, 0).target('1'), hashFields.target.circuitState)).toBe('o');
    expect(await carryOn(world.parts().steps, replayRecord())).toBe('idle');
    expect(await waiting()).toMatchObject({ reason: 'CircuitOpen', message: 'The circuit of destination dst_0 of rte_a is not closed.' });
    await world.redis.client.hset(shardKeys(prefix, 0).target('1'), hashFields.target.cooldownEndMs, 1);
    expect(await carryOn(world.parts().steps, replayRecord())).toBe('idle');
    expect(await world.runOf(replayRecord())).toMatchObject({ queued: 2 });
  });

  test(`a replay waits, says why, and continues while ${maxWaitingAtTarget} of any replays wait at the target`, async () => {
    await world.endedMessages(Array.from({ length: maxWaitingAtTarget + 30 }, () => 0));
    const other = replayRecord({ identity: 'identity_b', id: 'rep_b' });
    const { steps } = world.parts();
    expect(await carryOn(steps, replayRecord())).toBe('idle');
    expect(await world.runOf(replayRecord())).toMatchObject({ queued: maxWaitingAtTarget });
    expect(await carryOn(steps, other)).toBe('idle');
    expect(await world.runOf(other)).toMatchObject({ queued: 0 });
    expect(await world.redis.client.xlen(`${prefix}{s0}:w:1r`)).toBe(maxWaitingAtTarget);
    await world.toTheEnd(replayRecord());
    expect(await world.runOf(replayRecord())).toMatchObject({
      phase: 'Succeeded',
      queued: maxWaitingAtTarget + 30,
      delivered: maxWaitingAtTarget + 30,
    });
    await world.toTheEnd(other);
    expect(await world.runOf(other)).toMatchObject({
      phase: 'Succeeded',
      queued: maxWaitingAtTarget + 30,
      delivered: maxWaitingAtTarget + 30,
    });
  });

  test('a replay waits, says why, and continues while the limit of the month is reached', async () => {
    await world.endedMessages([0, 0, 0]);
    const { steps } = world.parts();
    expect(await carryOn(steps, replayRecord(), { monthlyMessages: 2 })).toBe('idle');
    expect(await waiting()).toMatchObject({ reason: 'QuotaReached' });
    expect(await world.redis.client.hvals(keys.quota)).toEqual(['2']);
    while ((await carryOn(steps, replayRecord(), { monthlyMessages: 3 })) !== 'ended') await world.endAll();
    expect(await world.runOf(replayRecord())).toMatchObject({ phase: 'Succeeded', queued: 3, delivered: 3 });
    expect(await world.redis.client.hvals(keys.quota)).toEqual(['3']);
  });

  test('a replay waits, says why, and continues while Redis is full', async () => {
    await world.endedMessages([0]);
    await world.redis.client.hset(shardKeys(prefix, 0).declared[0], 'full', '1');
    expect(await carryOn(world.parts().steps, replayRecord())).toBe('idle');
    expect(await waiting()).toMatchObject({ reason: 'RedisFull' });
    await world.redis.client.hdel(shardKeys(prefix, 0).declared[0], 'full');
    await world.toTheEnd(replayRecord());
    expect(await world.runOf(replayRecord())).toMatchObject({ phase: 'Succeeded', delivered: 1 });
  });

  test('but not while Redis does not answer: that is tried again', async () => {
    await world.endedMessages([0]);
    const { steps } = world.parts();
    jest.spyOn(ByteShares.prototype, 'refuseOver').mockRejectedValueOnce(new RedisUnavailableError(new Error('Connection is closed.')));
    await expect(carryOn(steps, replayRecord())).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(await waiting()).toBeNull();
    await world.toTheEnd(replayRecord());
    expect(await world.runOf(replayRecord())).toMatchObject({ phase: 'Succeeded', delivered: 1 });
  });

  test('a replay waits, says why, and continues while as many others of its organization run as may', async () => {
    await world.endedMessages([0]);
    const { steps } = world.parts();
    const others = Array.from({ length: maxRunningReplays }, (_, i) => replayRecord({ identity: `identity_${i}`, id: `rep_${i}` }));
    for (const other of others) expect(await carryOn(steps, other)).toBe('idle');
    expect(await carryOn(steps, replayRecord())).toBe('idle');
    expect(await world.runOf(replayRecord())).toMatchObject({ phase: 'Planning', waiting: { reason: 'TooManyReplays' } });
    expect(await carryOn(steps, replayRecord({ org: 'org_b' }))).toBe('ended');
    await world.endAll();
    for (const other of others) expect(await carryOn(steps, other)).toBe('ended');
    await world.toTheEnd(replayRecord());
    expect(await world.runOf(replayRecord())).toMatchObject({ phase: 'Succeeded', queued: 1 });
  });
});

test('an original whose payload is gone is skipped, and not counted', async () => {
  const [id = ''] = await world.endedMessages([0, 0]);
  const view = await world.reader.delivery(org, id);
  await world.redis.client.del(shardKeys(prefix, 0).event(view?.eventId.slice('evt_00'.length) ?? ''));
  while ((await carryOn(world.parts().steps, replayRecord(), { monthlyMessages: 5 })) !== 'ended') await world.endAll();
  expect(await world.runOf(replayRecord())).toMatchObject({ phase: 'Succeeded', queued: 1, skipped: { payload_not_found: 1 } });
  expect(await world.redis.client.hvals(keys.quota)).toEqual(['1']);
});

test('nothing is left of the replays of an organization that is purged', async () => {
  await world.endedMessages([0]);
  expect(await carryOn(world.parts().steps, replayRecord())).toBe('idle');
  await world.parts().runs.lease(org, 'identity_a', 'w1', 1000);
  await new RedisMessagePurger({ redis: world.redis.client, prefix, shards: world.shards }).purgeOrganization(
    org,
    AbortSignal.timeout(10_000),
  );
  expect(await world.redis.client.keys(`${prefix}{intake:*`)).toEqual([]);
});
