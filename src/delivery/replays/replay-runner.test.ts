import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { dead, settleEverything } from '../../../test/support/queue-worker.ts';
import { organizationRecord } from '../../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { replayParts, replayRecord } from '../../../test/support/replays.ts';
import type { Clock } from '../../core/clock.ts';
import { newTimedId } from '../../core/ids.ts';
import type { ReplayRecord } from '../../core/replay-record.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import { changeStreamBlockMs } from '../../data/registry/change-stream.ts';
import { RedisRegistryPublisher } from '../../data/registry/registry-publisher.ts';
import { RedisRegistryReader } from '../../data/registry/registry-reader.ts';
import type { ReplaySteps } from '../../data/replays/replay-steps.ts';
import { blockingConnection } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/system-clock.ts';
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
  await queue.refreshShard('w1', 1000);
  const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  const targets = () => [
    { messageId: newTimedId('msg_', 0, Date.now()), routeId: `rte_${org}`, destinationId: `dst_${org}`, shard: 0, maxAttempts: 1 },
  ];
  await Promise.all(Array.from({ length: count }, () => acceptor.accept(newEvent({ org, targets: targets() }))));
  await settleEverything(queue, 'w1', dead);
}

type Advance = ReplaySteps['advance'];

/** Runs the work beside a runner; returns what it has advanced, in order. `around`: around each step. */
async function beside(
  worker: string,
  work: () => Promise<unknown>,
  {
    clock = systemClock,
    around = (step) => step(),
  }: { clock?: Clock; around?: (step: () => ReturnType<Advance>, org: string, most: number) => ReturnType<Advance> } = {},
): Promise<{ org: string; identity: string }[]> {
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
        return around(() => steps.advance(record, options), record.org, options.most);
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

const dryRunsOf = (org: string, count: number, what: ReplayRecord['what'] = 'deliveries') =>
  Array.from({ length: count }, (_, i) => replayRecord({ org, id: `rep_${org}${i}`, identity: `${org}${i}`, isDryRun: true, what }));
const hasSucceeded = async (replay: ReplayRecord) => expect((await runOf(replay))?.phase).toBe('Succeeded');

test('an organization has one step under way at a time, and a slow evaluation of events holds up no other organization', async () => {
  const [replaysOfA, replaysOfB] = [dryRunsOf('org_a', 5, 'events'), dryRunsOf('org_b', 1)];
  for (const replay of [...replaysOfA, ...replaysOfB]) await publisher.publish(epoch, 'replay', replay);
  const underWay = new Map<string, number>();
  const most = new Map<string, number>();
  const hold = Promise.withResolvers<void>();
  const around = async (step: () => ReturnType<Advance>, org: string) => {
    const count = (underWay.get(org) ?? 0) + 1;
    underWay.set(org, count);
    most.set(org, Math.max(count, most.get(org) ?? 0));
    if (org === 'org_a') await hold.promise;
    const advance = await step();
    underWay.set(org, (underWay.get(org) ?? 0) - 1);
    return advance;
  };
  await beside(
    'w1',
    async () => {
      for (const replay of replaysOfB) await eventually(() => hasSucceeded(replay));
      hold.resolve();
      for (const replay of replaysOfA) await eventually(() => hasSucceeded(replay));
    },
    { around },
  );
  expect(Object.fromEntries(most)).toEqual({ org_a: 1, org_b: 1 });
});

test('eight steps that evaluate events are under way at most, and an organization that waits has its turn before the others continue', async () => {
  const organizations = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'].map((name) => `org_${name}`);
  for (const id of organizations.slice(2)) await publisher.publish(epoch, 'organization', organizationRecord({ id, slug: id }));
  const replays = organizations.flatMap((org) => dryRunsOf(org, 2, 'events'));
  for (const replay of replays) await publisher.publish(epoch, 'replay', replay);
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const around = async (step: () => ReturnType<Advance>, org: string) => {
    begun.push(org);
    if (begun.length <= 8) await new Promise<void>((resolve) => void ends.push(resolve));
    return await step();
  };
  await beside(
    'w1',
    async () => {
      await eventually(() => expect(begun.length).toBe(8));
      ends.shift()?.();
      await eventually(() => expect(begun.length).toBeGreaterThan(8));
      for (const end of ends) end();
      for (const replay of replays) await eventually(() => hasSucceeded(replay));
    },
    { around },
  );
  expect(begun.slice(0, 9).toSorted()).toEqual(organizations);
});

test('steps that evaluate nothing are made one at a time, organizations in turn, with a rest between them that is twice as long as the step while several replays are due', async () => {
  const replays = ['org_a', 'org_b'].flatMap((org) => dryRunsOf(org, 2));
  for (const replay of replays) await publisher.publish(epoch, 'replay', replay);
  const clock = new FakeClock(Date.now());
  const steps: { org: string; beganAtMs: number; endedAtMs: number }[] = [];
  const around = async (step: () => ReturnType<Advance>, org: string) => {
    const beganAtMs = clock.now();
    const advance = await step();
    await clock.advance(30);
    steps.push({ org, beganAtMs, endedAtMs: clock.now() });
    return advance;
  };
  const allHaveSucceeded = async () => {
    await clock.advance(1);
    for (const replay of replays) await hasSucceeded(replay);
  };
  await beside('w1', () => eventually(allHaveSucceeded), { clock, around });
  const rests = steps.slice(1).map(({ beganAtMs }, i) => beganAtMs - (steps[i]?.endedAtMs ?? 0));
  expect(Math.min(...rests)).toBeGreaterThanOrEqual(30);
  expect(Math.min(...rests.slice(0, 3))).toBeGreaterThanOrEqual(60);
  expect(steps.slice(0, 4).map(({ org }) => org)).toEqual(['org_a', 'org_b', 'org_a', 'org_b']);
});

test('a step may queue 200 messages, and 25 while other replays are due', async () => {
  const replays = ['org_a', 'org_b'].flatMap((org) => dryRunsOf(org, 1).map((replay) => ({ ...replay, ratePerSecond: 1000 })));
  for (const replay of replays) await publisher.publish(epoch, 'replay', replay);
  const allowances: number[] = [];
  const around = (step: () => ReturnType<Advance>, _: string, most: number) => {
    allowances.push(most);
    return step();
  };
  const allHaveSucceeded = async () => {
    for (const replay of replays) await hasSucceeded(replay);
  };
  await beside('w1', () => eventually(allHaveSucceeded), { around });
  expect(Math.min(...allowances)).toBe(25);
  const lone = { ...replayRecord({ id: 'rep_lone', identity: 'lone', isDryRun: true }), ratePerSecond: 1000 };
  allowances.length = 0;
  await publisher.publish(epoch, 'replay', lone);
  await beside('w1', () => eventually(() => hasSucceeded(lone)), { around });
  expect(Math.max(...allowances)).toBe(200);
});

test('steps that evaluate events leave the turns of organizations whose steps evaluate nothing as they are', async () => {
  await publisher.publish(epoch, 'organization', organizationRecord({ id: 'org_c', slug: 'org_c' }));
  const replays = ['org_a', 'org_c'].flatMap((org) => dryRunsOf(org, 2));
  for (const replay of [...replays, ...dryRunsOf('org_b', 10, 'events')]) await publisher.publish(epoch, 'replay', replay);
  const clock = new FakeClock(Date.now());
  const turns: string[] = [];
  let nextEnd = Promise.withResolvers<void>();
  // A step of org_b lasts until one of the others has ended: the next one begins while these rest.
  const around = async (step: () => ReturnType<Advance>, org: string) => {
    if (org === 'org_b') {
      if (turns.length < 4) await nextEnd.promise;
      return await step();
    }
    turns.push(org);
    const advance = await step();
    await clock.advance(30);
    nextEnd.resolve();
    nextEnd = Promise.withResolvers();
    return advance;
  };
  const allHaveSucceeded = async () => {
    await clock.advance(1);
    for (const replay of replays) await hasSucceeded(replay);
  };
  await beside('w1', () => eventually(allHaveSucceeded), { clock, around });
  expect(turns.slice(0, 4)).toEqual(['org_a', 'org_c', 'org_a', 'org_c']);
});

test('an organization whose first replay waits for the step of another organization does not block the event loop with its second one', async () => {
  const ofB = dryRunsOf('org_b', 2).map((replay, i): ReplayRecord => ({ ...replay, what: i === 0 ? 'deliveries' : 'events' }));
  const replays = [...dryRunsOf('org_a', 1), ...ofB];
  for (const replay of replays) await publisher.publish(epoch, 'replay', replay);
  let longestMs = 0;
  const around = async (step: () => ReturnType<Advance>, org: string) => {
    const beganMs = performance.now();
    if (org === 'org_a') await sleep(200);
    const advance = await step();
    longestMs = Math.max(longestMs, performance.now() - beganMs);
    return advance;
  };
  const allHaveSucceeded = async () => {
    for (const replay of replays) await hasSucceeded(replay);
  };
  await beside('w1', () => eventually(allHaveSucceeded), { around });
  expect(longestMs).toBeLessThan(10_000);
});

test('a replay that is deleted while its step is under way is cancelled after the step', async () => {
  await deadLetters('org_a', 2);
  const replay = replayRecord();
  await publisher.publish(epoch, 'replay', replay);
  const [began, hold] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const around = async (step: () => ReturnType<Advance>, org: string) => {
    if (org !== 'org_a' || (await runOf(replay))?.phase !== 'Running') return await step();
    began.resolve();
    await hold.promise;
    return await step();
  };
  await beside(
    'w1',
    async () => {
      await began.promise;
      await publisher.retract(epoch, 'replay', replay.id);
      // The runner is notified of it before these.
      for (const later of dryRunsOf('org_b', 1, 'events')) {
        await publisher.publish(epoch, 'replay', later);
        await eventually(() => hasSucceeded(later));
      }
      expect((await runOf(replay))?.phase).toBe('Running');
      hold.resolve();
      await eventually(async () => expect((await runOf(replay))?.phase).toBe('Cancelled'));
      expect(await runOf(replay)).toMatchObject({ queued: 2 });
    },
    { around },
  );
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
    { clock },
  );
});

test('what the rate allows while a step is under way is queued right after it', async () => {
  await deadLetters('org_a', 120);
  const replay = replayRecord({ ratePerSecond: 100 });
  await publisher.publish(epoch, 'replay', replay);
  const clock = new FakeClock(Date.now());
  const queued = async () => (await runOf(replay))?.queued ?? 0;
  const around = async (step: () => ReturnType<Advance>) => {
    const advance = await step();
    // Ten messages in the time of the step.
    if (advance.queued > 0) await clock.advance(100);
    return advance;
  };
  const beganAtMs = clock.now();
  const allAreQueued = async () => {
    await clock.advance(10);
    expect(await queued()).toBe(120);
  };
  await beside('w1', () => eventually(allAreQueued), { clock, around });
  expect(clock.now() - beganAtMs).toBeLessThan(2000);
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
