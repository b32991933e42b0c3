import { expect, test } from '@jest/globals';
import { startDeliveryProgram } from '../../../test/support/delivery-program.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import type { Program } from '../../../test/support/program.ts';
import { dead, settleEverything } from '../../../test/support/queue-worker.ts';
import { startReceiver } from '../../../test/support/receiver.ts';
import { destinationRecord, organizationRecord, routeRecord, sourceRecord } from '../../../test/support/records.ts';
import { startRedis } from '../../../test/support/redis.ts';
import { replayRecord } from '../../../test/support/replays.ts';
import { checkShards } from '../../data/check/shard-check.ts';
import { RedisMessageReader } from '../../data/history/message-reader.ts';
import { intakeKeys } from '../../data/intake/intake-keys.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import { RedisRegistryPublisher } from '../../data/registry/registry-publisher.ts';
import { RedisReplayRuns } from '../../data/replays/redis-replay-runs.ts';

const prefix = 'posthorn:';
const originals = 900;
const kills = 2;

test('a replay that is suspended, resumed, and whose workers are killed replays each original once, with exact counts', async () => {
  const redis = await startRedis();
  const receiver = await startReceiver();
  const ops = await startReceiver();
  const programs: Program[] = [];
  const startWorker = async (): Promise<Program> => {
    const program = await startDeliveryProgram(redis.url, { POSTHORN_SHARDS: '1', POSTHORN_EGRESS_ALLOWED_CIDRS: '127.0.0.0/8' });
    programs.push(program);
    return program;
  };
  try {
    const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
    const reader = new RedisMessageReader({ redis: redis.client, prefix });
    const publisher = new RedisRegistryPublisher(redis.client, prefix);
    const epoch = await publisher.mintEpoch();
    // 900 are 90 % of it.
    await publisher.publish(epoch, 'organization', organizationRecord({ monthlyMessages: 1000 }));
    await publisher.publish(epoch, 'source', sourceRecord({ id: 'src_own', slug: 'posthorn', provider: 'posthorn' }));
    await publisher.publish(epoch, 'destination', destinationRecord({ url: ops.url }, { id: 'dst_ops' }));
    await publisher.publish(
      epoch,
      'route',
      routeRecord({ id: 'rte_ops', sourceId: 'src_own', destinations: [{ id: 'dst_ops', shard: 0 }] }),
    );
    await publisher.publish(epoch, 'route', routeRecord());
    await publisher.publish(epoch, 'destination', destinationRecord({ url: receiver.url }));
    await publisher.markComplete();
    const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
    await queue.refreshShard('w1', 1000);
    await Promise.all(Array.from({ length: originals }, () => acceptor.accept(newEvent())));
    await settleEverything(queue, 'w1', dead);

    const record = replayRecord({ ratePerSecond: 100 });
    const runs = new RedisReplayRuns({ redis: redis.client, prefix });
    const run = async () => (await runs.find('org_a', record.identity)) ?? { phase: null, queued: 0 };
    const queuedAtLeast = (count: number) => eventually(async () => expect((await run()).queued).toBeGreaterThanOrEqual(count), 90_000);
    await publisher.publish(epoch, 'replay', record);
    let worker = await startWorker();
    for (let kill = 1; kill <= kills; kill++) {
      await queuedAtLeast(kill * 150);
      worker.signal('SIGKILL');
      await worker.ended;
      worker = await startWorker();
    }
    await queuedAtLeast(kills * 150 + 100);
    await publisher.publish(epoch, 'replay', { ...record, isSuspended: true, generation: 2 });
    let before = -1;
    await eventually(async () => {
      const { queued } = await run();
      const isStill = queued === before;
      before = queued;
      expect(isStill).toBe(true);
    });
    expect(before).toBeLessThan(originals);
    await publisher.publish(epoch, 'replay', { ...record, generation: 3 });
    await eventually(async () => expect((await run()).phase).toBe('Succeeded'), 90_000);
    expect(await run()).toMatchObject({ queued: originals, skipped: {}, delivered: originals, failed: 0, endedOtherwise: 0 });
    const replayed: (string | null)[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await reader.deliveries(
        'org_a',
        { statuses: ['delivered'], routeId: 'rte_a' },
        { limit: 100, ...(cursor !== undefined && { cursor }) },
      );
      replayed.push(...page.items.map(({ replayedFrom }) => replayedFrom));
      cursor = page.nextCursor;
    }
    expect(replayed).toHaveLength(originals);
    expect(new Set(replayed).size).toBe(originals);
    // Work under way when a worker was killed comes again, under the same id.
    expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(originals);
    expect(
      Object.values(await redis.client.hgetall(intakeKeys(prefix, 'org_a').quota))
        .map(Number)
        .sort(),
    ).toEqual([80, originals]);
    await ops.arrived(2);
    const told = ops.requests.map(({ body }) => JSON.parse(body.toString()));
    expect(told.toSorted((one, other) => one.type.localeCompare(other.type))).toMatchObject([
      { type: 'quota.reached', data: { percent: 80, limit: 1000 } },
      { type: 'replay.finished', data: { phase: 'Succeeded', queued: originals, delivered: originals } },
    ]);
    expect((await checkShards({ redis: redis.client, prefix })).findings).toEqual([]);
  } finally {
    for (const program of programs) await program.stop();
    await receiver.close();
    await ops.close();
    await redis.stop();
  }
}, 300_000);
