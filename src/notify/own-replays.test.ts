import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { startAlertingWorker } from '../../test/support/alerting-worker.ts';
import { type CrashMoment, crashAtEveryCommand } from '../../test/support/crashing-client.ts';
import { eventually } from '../../test/support/eventually.ts';
import { takeOwnEvents } from '../../test/support/own-events.ts';
import { type Receiver, startReceiver } from '../../test/support/receiver.ts';
import { RecordRegistry } from '../../test/support/record-registry.ts';
import { destinationRecord, organizationRecord, routeRecord, sourceRecord } from '../../test/support/records.ts';
import { carryOn, replayRecord, startReplayWorld } from '../../test/support/replays.ts';
import { waitForPeriodStart } from '../../test/support/wait-for-period-start.ts';
import { hopHeader } from '../core/hops.ts';
import type { ReplayRecord } from '../core/replay-record.ts';
import { intakeKeys } from '../data/intake/intake-keys.ts';
import { RedisRegistryPublisher } from '../data/registry/registry-publisher.ts';
import type { RedisClient } from '../redis/connection.ts';

const prefix = 'test:';
const org = 'org_a';
const minuteMs = 60_000;
const isoTime = expect.stringMatching(/^\d{4}-.*Z$/);
let world: Awaited<ReturnType<typeof startReplayWorld>>;
let registry: RecordRegistry;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  world = await startReplayWorld(prefix);
});
afterAll(() => world.redis.stop());
beforeEach(async () => {
  await world.empty();
  registry = new RecordRegistry();
  registry.put('organization', organizationRecord());
  registry.put('source', sourceRecord());
  registry.put('source', sourceRecord({ id: 'src_own', slug: 'posthorn', provider: 'posthorn' }));
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const notedEvents = () => takeOwnEvents(world.redis.client, { prefix, shards: world.shards, registry });
const running = () => world.redis.client.smembers(intakeKeys(prefix, org).runningReplays);

describe('a worker', () => {
  let ops: Receiver;
  let shop: Receiver;
  beforeEach(async () => {
    [ops, shop] = [await startReceiver(), await startReceiver()];
    for (const [shard, id] of ['dst_0', 'dst_1'].entries())
      registry.put('destination', destinationRecord({ url: shop.url }, { id, shard }));
    registry.put('destination', destinationRecord({ url: ops.url }, { id: 'dst_ops', shard: 1 }));
    const destinations = ['dst_0', 'dst_1'].map((id, shard) => ({ id, shard }));
    registry.put('route', routeRecord({ destinations }));
    registry.put('route', routeRecord({ id: 'rte_ops', sourceId: 'src_own', destinations: [{ id: 'dst_ops', shard: 1 }] }));
    ends.push(
      () => ops.close(),
      () => shop.close(),
    );
  });
  const told = () => ops.requests.map(({ body }) => JSON.parse(body.toString()));

  async function start(record: ReplayRecord): Promise<void> {
    const publisher = new RedisRegistryPublisher(world.redis.client, prefix);
    await publisher.publish(await publisher.mintEpoch(), 'replay', record);
    registry.put('replay', record);
    ends.push(startAlertingWorker(world.redis, { prefix, registry, shards: world.shards }));
  }

  test('a worker reports the end of a replay to the routes of the source, as the documented JSON, once', async () => {
    await world.endedMessages([0, 1, 0]);
    await start(replayRecord({ slug: 'night', hop: 3 }));
    await ops.arrived(1);
    expect(ops.requests[0]?.headers[hopHeader]).toBe('4');
    expect(told()[0]).toEqual({
      type: 'replay.finished',
      occurredAt: isoTime,
      organization: org,
      omitted: 0,
      data: {
        replayId: 'rep_a',
        name: 'night',
        what: 'deliveries',
        dryRun: false,
        phase: 'Succeeded',
        candidates: 3,
        isEstimate: false,
        bytes: 21,
        queued: 3,
        skipped: 0,
        skippedByReason: {},
        delivered: 3,
        failed: 0,
        endedOtherwise: 0,
        failure: null,
        startedAt: isoTime,
        completedAt: isoTime,
      },
    });
    expect(shop.requests).toHaveLength(3);
    await eventually(async () => expect(await running()).toEqual([]));
    await ends.pop()?.();
    ends.push(startAlertingWorker(world.redis, { prefix, registry, shards: world.shards }));
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(ops.requests).toHaveLength(1);
  });

  test('a worker reports the end of a dry run, marked as one', async () => {
    await world.endedMessages([0, 1]);
    await start(replayRecord({ isDryRun: true }));
    await ops.arrived(1);
    expect(told()).toMatchObject([{ data: { dryRun: true, phase: 'Succeeded', candidates: 2, queued: 0 } }]);
  });

  test('a worker reports the end of a replay of own events, which is a replay as any other', async () => {
    const record = replayRecord({ filter: { statuses: ['delivered'], routeId: 'rte_ops' } });
    await world.endedMessages([0]);
    await start(replayRecord({ identity: 'identity_first', id: 'rep_first', isDryRun: true }));
    await ops.arrived(1);
    registry.put('replay', record);
    await ops.arrived(3);
    await eventually(async () => expect(await running()).toEqual([]));
    expect(told().map(({ data }) => data.replayId)).toEqual(['rep_first', 'rep_first', 'rep_a']);
  });
});

describe('the end of a replay', () => {
  const parts = () => world.parts(world.redis.client, { hasOwnSource: true });

  test('nothing is recorded without a source', async () => {
    await world.endedMessages([0]);
    await world.toTheEnd(replayRecord());
    expect(await notedEvents()).toEqual([]);
    expect(await world.redis.client.keys(`${prefix}*:oe:*`)).toEqual([]);
  });

  test.each<[string, ReplayRecord, object]>([
    [
      'a replay that fails says why',
      replayRecord({ filter: { statuses: ['dlq'], where: 'payload.a ==' } }),
      { phase: 'Failed', failure: { reason: 'InvalidFilter', message: expect.stringContaining('where') } },
    ],
    ['a replay that is cancelled is told', replayRecord({ isCancelled: true }), { phase: 'Cancelled', queued: 0, failure: null }],
  ])('%s', async (_, record, data) => {
    await world.endedMessages([0]);
    expect(await carryOn(parts().steps, record)).toBe('ended');
    expect(await carryOn(parts().steps, record)).toBe('ended');
    expect(await carryOn(parts().steps, { ...record, uid: 'uid_of_another_object' })).toBe('ended');
    expect((await notedEvents()).map(({ payload }) => payload.data)).toEqual([expect.objectContaining(data)]);
  });

  test.each<CrashMoment>(['before', 'after'])(
    'the end of a replay is one event when the process dies %s any of its commands',
    async (moment) => {
      const record = replayRecord({ slug: 'night' });
      const toTheEnd = async (client: RedisClient) => {
        const { steps } = world.parts(client, { hasOwnSource: true });
        while ((await carryOn(steps, record)) !== 'ended') await world.endAll();
      };
      await crashAtEveryCommand(world.redis.client, moment, {
        prepare: async () => {
          await world.empty();
          await world.endedMessages([0, 1]);
        },
        work: toTheEnd,
        look: async () => {
          await toTheEnd(world.redis.client);
          const events = await notedEvents();
          expect(new Set(events.map(({ id }) => id)).size).toBe(1);
          for (const { payload } of events)
            expect(payload.data).toMatchObject({ name: 'night', phase: 'Succeeded', queued: 2, delivered: 2 });
          expect(await running()).toEqual([]);
          await toTheEnd(world.redis.client);
          expect(await notedEvents()).toEqual([]);
        },
      });
    },
  );

  test.each<CrashMoment>(['before', 'after'])(
    'of one whose object is deleted is one event when the process dies %s any of its commands',
    async (moment) => {
      const endGone = (client: RedisClient) => world.parts(client, { hasOwnSource: true }).steps.endGone(org, 'w1', async () => false);
      await crashAtEveryCommand(world.redis.client, moment, {
        prepare: async () => {
          await world.empty();
          await world.endedMessages([0]);
          expect(await carryOn(parts().steps, replayRecord({ slug: 'night' }))).toBe('idle');
        },
        work: endGone,
        look: async () => {
          await endGone(world.redis.client);
          const events = await notedEvents();
          expect(new Set(events.map(({ id }) => id)).size).toBe(1);
          expect(events[0]?.payload.data).toMatchObject({ replayId: 'rep_a', name: 'night', phase: 'Cancelled', queued: 1, delivered: 0 });
          expect(await running()).toEqual([]);
        },
      });
    },
  );

  test('replays beyond 20 that end in a minute are left out and counted', async () => {
    await waitForPeriodStart(minuteMs);
    for (let i = 0; i < 50; i++)
      expect(await carryOn(parts().steps, replayRecord({ identity: `i${i}`, id: `rep_${i}`, isCancelled: true }))).toBe('ended');
    const events = await notedEvents();
    expect(events).toHaveLength(20);
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
    expect(await running()).toEqual([]);
  });
});
