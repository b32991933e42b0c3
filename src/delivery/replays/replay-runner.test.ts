import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { patientClock } from '../../../test/support/patient-clock.ts';
import { dead, settleEverything } from '../../../test/support/queue-worker.ts';
import { organizationRecord } from '../../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { replayParts, replayRecord } from '../../../test/support/replays.ts';
import { newTimedId } from '../../core/ids.ts';
import type { ReplayRecord } from '../../core/replay-record.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import { changeStreamBlockMs } from '../../data/registry/change-stream.ts';
import { RedisRegistryPublisher } from '../../data/registry/registry-publisher.ts';
import { RedisRegistryReader } from '../../data/registry/registry-reader.ts';
import { blockingConnection } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/clock.ts';
import { ReplayRunner } from './replay-runner.ts';

const prefix = 'test:';
let redis: RedisServer;
let publisher: RedisRegistryPublisher;
let epoch: number;

beforeAll(async () => {
  redis = await startRedis();
  publisher = new RedisRegistryPublisher(redis.client, prefix);
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  epoch = await publisher.mintEpoch();
  for (const id of ['org_a', 'org_b']) await publisher.publish(epoch, 'organization', organizationRecord({ id, slug: id }));
  await publisher.markComplete();
});

const parts = () => replayParts(redis.client, { prefix, shards: 1 });
const runOf = async ({ org, identity }: ReplayRecord) => await parts().runs.find(org, identity);

/** Dead letters of the organization, all of one target. */
async function deadLetters(org: string, count: number): Promise<void> {
  const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  await queue.tend('w1', 1000);
  const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: patientClock });
  const targets = () => [
    { messageId: newTimedId('msg_', 0, Date.now()), routeId: `rte_${org}`, destinationId: `dst_${org}`, shard: 0, maxAttempts: 1 },
  ];
  await Promise.all(Array.from({ length: count }, () => acceptor.accept(newEvent({ org, targets: targets() }))));
  await settleEverything(queue, 'w1', dead);
}

/** Runs the work beside a runner; returns what it has advanced, in order. */
async function beside(worker: string, work: () => Promise<unknown>, clock = systemClock): Promise<{ org: string; identity: string }[]> {
  const { runs, steps } = parts();
  const advanced: { org: string; identity: string }[] = [];
  const blocking = blockingConnection(redis.url, { blockMs: changeStreamBlockMs });
  const registry = new RedisRegistryReader({ redis: redis.client, blocking, prefix, clock: systemClock, logger: silentLogger });
  const runner = new ReplayRunner({
    registry,
    published: publisher,
    runs,
    steps: {
      advance: (record, options) => {
        advanced.push({ org: record.org, identity: record.identity });
        return steps.advance(record, options);
      },
      endGone: (...args) => steps.endGone(...args),
    },
    worker,
    clock,
    logger: silentLogger,
  });
  registry.start();
  runner.start();
  try {
    await work();
  } finally {
    await runner.stop();
    await registry.stop();
    blocking.disconnect();
  }
  return advanced;
}

test('organizations take turns, however many replays one of them has', async () => {
  await deadLetters('org_a', 40);
  await deadLetters('org_b', 40);
  const of = (org: string, n: number) => replayRecord({ org, id: `rep_${org}${n}`, identity: `${org}${n}`, isDryRun: true });
  const replays = [...[1, 2, 3, 4, 5].map((n) => of('org_a', n)), of('org_b', 1)];
  for (const replay of replays) await publisher.publish(epoch, 'replay', replay);
  const advanced = await beside('w1', async () => {
    for (const replay of replays) await eventually(async () => expect((await runOf(replay))?.phase).toBe('Succeeded'));
  });
  const untilEnd = advanced.slice(0, advanced.findLastIndex(({ org }) => org === 'org_b') + 1).map(({ org }) => org);
  expect(untilEnd.length).toBeGreaterThan(2);
  expect(untilEnd.some((org, i) => i > 0 && org === untilEnd[i - 1])).toBe(false);
});

test('a replay is carried on by one worker at a time, and by another when its lease is given back', async () => {
  await deadLetters('org_a', 1);
  const replay = replayRecord();
  await publisher.publish(epoch, 'replay', replay);
  await beside('w1', async () => {
    await eventually(async () => expect((await runOf(replay))?.phase).toBe('Running'));
    expect(await parts().runs.lease('org_a', replay.identity, 'w2', 1000)).toBe(false);
    expect(await beside('w2', () => new Promise((resolve) => setTimeout(resolve, 300)))).toEqual([]);
  });
  expect(await parts().runs.lease('org_a', replay.identity, 'w2', 1000)).toBe(true);
});

test('no more is queued in a second than the rate of the replay', async () => {
  await deadLetters('org_a', 30);
  const replay = replayRecord({ ratePerSecond: 10 });
  await publisher.publish(epoch, 'replay', replay);
  const clock = new FakeClock(Date.now());
  await beside(
    'w1',
    async () => {
      await eventually(async () => {
        await clock.advance(1);
        expect((await runOf(replay))?.phase).toBe('Running');
      });
      const before = (await runOf(replay))?.queued ?? 0;
      expect(before).toBeLessThanOrEqual(10);
      const beganAtMs = clock.now();
      await eventually(async () => {
        await clock.advance(50);
        expect((await runOf(replay))?.queued).toBe(30);
      });
      expect(clock.now() - beganAtMs).toBeGreaterThanOrEqual((30 - before - 10) * 100);
    },
    clock,
  );
});

test('a replay whose object is deleted is cancelled', async () => {
  await deadLetters('org_a', 1);
  const [kept, deleted] = [replayRecord({ id: 'rep_a', identity: 'a' }), replayRecord({ id: 'rep_b', identity: 'b' })];
  for (const replay of [kept, deleted]) await publisher.publish(epoch, 'replay', replay);
  await beside('w1', async () => {
    for (const replay of [kept, deleted]) await eventually(async () => expect((await runOf(replay))?.queued).toBe(1));
    await publisher.retract(epoch, 'replay', deleted.id);
    await eventually(async () => expect((await runOf(deleted))?.phase).toBe('Cancelled'));
    expect((await runOf(kept))?.phase).toBe('Running');
  });
});
