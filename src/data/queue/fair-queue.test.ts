import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { messageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { delivered, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import type { ThrottleRecord } from '../../core/records.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { Job, Outcome } from './delivery-queue.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const off: ThrottleRecord = { mode: 'off', rateLimit: null, rateUnit: null, maxConcurrency: null, queueLimit: null };

const suite = messageQueueSuite(prefix);

const dequeue = (worker = 'w1', count = 64, throttle: ThrottleRecord = off): Promise<Job[]> =>
  takeFrom(suite.queue, worker, count, { throttle });
const settle = (jobs: Job[], outcome: Outcome, worker = 'w1'): Promise<boolean[]> => settleAll(suite.queue, worker, jobs, outcome);

describe('fairness', () => {
  const take = async (worker = 'w1') => {
    const jobs: Job[] = [];
    for (let more = await dequeue(worker); more.length > 0; more = await dequeue(worker)) jobs.push(...more);
    return jobs;
  };
  const acceptMany = async (count: number, destinations = ['dst_a']) => {
    for (let i = 0; i < count; i++) await suite.acceptor.accept(newEvent({ destinations }));
  };

  test('a route with a backlog of thousands leaves another one of its organization half of each batch', async () => {
    const acceptFor = (routeId: string, count: number) =>
      Promise.all(
        Array.from({ length: count }, () => {
          const event = newEvent({ destinations: [`dst_of_${routeId}`] });
          return suite.acceptor.accept({ ...event, targets: event.targets.map((target) => ({ ...target, routeId })) });
        }),
      );
    const batch = async (count: number): Promise<string[]> => {
      const jobs = await dequeue('w1', count);
      await settle(jobs, delivered);
      return jobs.map(({ target }) => target.routeId);
    };
    await acceptFor('rte_b', 1);
    expect(await batch(16)).toEqual(['rte_b']);
    for (let i = 0; i < 5; i++) await acceptFor('rte_a', 500);
    for (let i = 0; i < 20; i++) expect(await batch(16)).not.toHaveLength(0);
    await acceptFor('rte_b', 1);
    expect(await batch(4)).toContain('rte_b');
    await acceptFor('rte_b', 80);
    for (let i = 0; i < 8; i++) {
      const given = (await batch(16)).filter((routeId) => routeId === 'rte_b').length;
      expect(given).toBeGreaterThanOrEqual(6);
      expect(given).toBeLessThanOrEqual(10);
    }
  });

  test('hanging targets hold a quarter of the slots for one organization and a quarter of the probe band, and leave slots for a fast one', async () => {
    await acceptMany(1, ['dst_fast']);
    await settle(await take(), delivered);
    for (let i = 0; i < 10; i++) await acceptMany(10, [`dst_hangs${i}`]);
    const held = await take();
    expect(new Set(held.map(({ target }) => target.destinationId)).size).toBe(10);
    expect(held.length).toBeGreaterThanOrEqual(16);
    expect(held.length).toBeLessThanOrEqual(16 + 4);
    await acceptMany(5, ['dst_fast']);
    expect((await take()).map(({ target }) => target.destinationId)).toEqual(Array.from({ length: 5 }, () => 'dst_fast'));
  });

  describe('the probe band', () => {
    const slots = 64;
    const limit = slots / 2;
    const own = limit / 2;
    const band = limit / 2;
    const ownBand = band / 4;
    const hang = async (org: string, count = 2 * slots): Promise<Job[]> => {
      for (let i = 0; i < count; i++) await suite.acceptor.accept(newEvent({ org, destinations: [`dst_${org.replace(/\W/, 'x')}_${i}`] }));
      return await take();
    };

    test('the probe band has places for probes of an organization up to a quarter of it', async () => {
      expect(await hang('org_a')).toHaveLength(own + ownBand);
    });

    test('the probe band counts the webhooks and alerts of an organization with it', async () => {
      const held = [...(await hang('org_a', 8)), ...(await hang('+org_a')), ...(await hang('~org_a'))];
      expect(held).toHaveLength(own + ownBand);
    });

    test('the probe band has a slot for a new target of another organization beside hanging ones', async () => {
      await hang('org_a');
      const [job] = await hang('org_b', 1);
      expect(job?.target.org).toBe('org_b');
    });

    test('the probe band keeps its last place for an organization that has no slow attempt under way, and more for those that have few', async () => {
      const held = [...(await hang('org_a')), ...(await hang('org_b')), ...(await hang('org_c'))];
      expect(held).toHaveLength(limit + band - 4);
      expect(await hang('org_d')).toHaveLength(2);
      expect(await hang('org_e')).toHaveLength(1);
      expect(await hang('org_f')).toHaveLength(1);
      expect(await hang('org_g')).toHaveLength(0);
      await settle(held.filter(({ target }) => target.org === 'org_c').slice(0, 1), delivered);
      expect((await take()).length).toBeGreaterThan(0);
    });

    test('the probe band gives the first places to as many targets of an organization as there are', async () => {
      for (let i = 0; i < 10; i++) await acceptMany(10, [`dst_hangs${i}`]);
      const held = await take();
      expect(new Set(held.map(({ target }) => target.destinationId)).size).toBe(10);
    });

    test.each([
      { name: '1 slot', workerSlots: 1, others: 0, ofOtherShards: 0, expected: 1 },
      { name: '4 slots', workerSlots: 4, others: 0, ofOtherShards: 0, expected: 1 + 1 },
      { name: '32 slots', workerSlots: 32, others: 0, ofOtherShards: 0, expected: 8 + 2 },
      {
        name: '32 slots of which the organization holds its share in other shards',
        workerSlots: 32,
        others: 0,
        ofOtherShards: 10,
        expected: 0,
      },
      { name: '32 slots of which others hold all places but one', workerSlots: 32, others: 23, ofOtherShards: 0, expected: 1 },
      { name: '32 slots of which others hold all places', workerSlots: 32, others: 24, ofOtherShards: 0, expected: 0 },
    ])('the probe band holds for a worker of $name', async ({ workerSlots, others, ofOtherShards, expected }) => {
      for (let i = 0; i < slots; i++) await acceptMany(1, [`dst_hangs${i}`]);
      const all: Job[] = [];
      for (let more = 1; more > 0; ) {
        const own = ofOtherShards + all.length;
        const slow = { slots: workerSlots, held: others + own, byAccount: new Map([['org_a', own]]) };
        const { jobs, unconfigured } = await suite.queue.dequeue('w1', 64, slow);
        for (const target of unconfigured) await suite.queue.configure(target, targetSetting());
        all.push(...jobs);
        more = jobs.length + unconfigured.length;
      }
      expect(all).toHaveLength(expected);
    });
  });

  test('a fast target that was idle is not taken for a slow one beside hanging targets', async () => {
    await acceptMany(1, ['dst_fast']);
    await settle(await take(), delivered);
    for (let i = 0; i < 10; i++) await acceptMany(10, [`dst_hangs${i}`]);
    await take();
    await suite.redis.client.hset(`${prefix}{s0}:t:1`, hashFields.target.lastSuccessMs, Date.now() - 60_000);
    await acceptMany(1, ['dst_fast']);
    expect(await dequeue()).toHaveLength(1);
    await acceptMany(1, ['dst_fast']);
    expect(await dequeue()).toHaveLength(1);
  });

  test('a new target that shows that it is fast continues at once beside hanging targets', async () => {
    for (let i = 0; i < 10; i++) await acceptMany(10, [`dst_hangs${i}`]);
    await take();
    await acceptMany(5, ['dst_new']);
    const first = await take();
    expect(first.map(({ target }) => target.destinationId)).toEqual(['dst_new']);
    await settle(first, delivered);
    expect((await take()).map(({ target }) => target.destinationId)).toEqual(Array.from({ length: 4 }, () => 'dst_new'));
  });

  test('a place among the slow ones that becomes free is taken at once', async () => {
    for (let i = 0; i < 3; i++) await acceptMany(10, [`dst_hangs${i}`]);
    const held = await take();
    expect(held.length).toBeLessThanOrEqual(18);
    await settle(held.slice(0, 8), { type: 'retry', attempt: { ...failure, durationMs: 30_000 }, delayMs: 60_000 });
    expect((await take()).length).toBeGreaterThanOrEqual(5);
  });

  test('the places of a dead worker among the slow ones are taken at once', async () => {
    for (let i = 0; i < 3; i++) await acceptMany(10, [`dst_hangs${i}`]);
    await take('w1');
    await suite.queue.reclaim(['w1']);
    expect(new Set((await take('w2')).map(({ target }) => target.destinationId)).size).toBe(3);
  });

  test('a target that was fast has a wide cap only while its attempts come back', async () => {
    await acceptMany(1);
    await settle(await take(), delivered);
    await acceptMany(60);
    expect(await dequeue('w1', 64)).toHaveLength(32);
    await suite.redis.client.hset(`${prefix}{s0}:t:1`, hashFields.target.lastSuccessMs, Date.now() - 2000);
    await suite.redis.client.hdel(`${prefix}{s0}:t:1`, hashFields.target.blockedBy);
    await acceptMany(1);
    expect(await dequeue('w1', 64)).toHaveLength(0);
  });

  test('a wall of retries leaves half to fresh messages', async () => {
    await acceptMany(1);
    await settle(await take(), delivered);
    await acceptMany(40);
    for (let jobs = await dequeue(); jobs.length > 0; jobs = await dequeue())
      await settle(jobs, { type: 'retry', attempt: failure, delayMs: 0 });
    await sleep(5);
    while ((await suite.queue.promote()).nextDueMs === 0);
    await acceptMany(40);
    const jobs = await dequeue('w1', 10);
    expect(jobs).toHaveLength(10);
    expect(jobs.filter(({ attempts }) => attempts === 0)).toHaveLength(5);
  });

  test('where routes wait for one destination, the one of higher priority goes first', async () => {
    const throttle: ThrottleRecord = { ...off, mode: 'concurrency', maxConcurrency: 1 };
    for (const routeId of ['rte_under_way', 'rte_low', 'rte_high']) {
      const event = newEvent();
      await suite.acceptor.accept({ ...event, targets: event.targets.map((target) => ({ ...target, routeId })) });
    }
    for (const target of (await suite.queue.targets(1)).targets) {
      await suite.queue.configure(target, targetSetting({ throttle, priority: target.routeId === 'rte_high' ? 10 : 0 }));
    }
    const order: string[] = [];
    for (let i = 0; i < 3; i++) {
      const jobs = await dequeue('w1', 1);
      order.push(...jobs.map(({ target }) => target.routeId));
      // Those without a slot begin to wait, in the order in which their messages came.
      expect(await dequeue('w1', 1)).toEqual([]);
      await settle(jobs, delivered);
    }
    expect(order).toEqual(['rte_under_way', 'rte_high', 'rte_low']);
  });

  test('what a dead worker held gives its place at the destination back at once', async () => {
    const throttle: ThrottleRecord = { ...off, mode: 'concurrency', maxConcurrency: 1 };
    await acceptMany(2);
    expect(await dequeue('w1', 64, throttle)).toHaveLength(1);
    expect(await dequeue('w1', 64, throttle)).toHaveLength(0);
    await suite.queue.reclaim(['w1']);
    expect((await suite.queue.dequeue('w2', 64)).jobs).toHaveLength(1);
  });

  test('a place at the destination whose time is over is free, though its worker never settled', async () => {
    const throttle: ThrottleRecord = { ...off, mode: 'concurrency', maxConcurrency: 1 };
    await acceptMany(2);
    expect(await dequeue('w1', 64, throttle)).toHaveLength(1);
    expect(await dequeue('w2', 64, throttle)).toHaveLength(0);
    const [handle = ''] = await suite.redis.client.zrange(`${prefix}{s0}:lease:dst_a`, '0', '-1');
    await suite.redis.client.zadd(`${prefix}{s0}:lease:dst_a`, 'XX', Date.now() - 1, handle);
    await suite.redis.client.zadd(`${prefix}{s0}:waiting`, 'XX', Date.now() - 1, 'dst_a');
    await suite.queue.promote();
    expect(await dequeue('w2', 64, throttle)).toHaveLength(1);
  });
});

describe('a Redis that is getting full', () => {
  const limited = (memoryLimitBytes: number) => new RedisDeliveryQueue({ redis: suite.redis.client, prefix, memoryLimitBytes });
  const usedBytes = async () => Number(/used_memory:(\d+)/.exec(await suite.redis.client.info('memory'))?.[1]);

  test('a Redis that is getting full refuses events above 80 % of the limit and takes them again below 75 %, while deliveries continue', async () => {
    await suite.acceptor.accept(newEvent());
    const full = limited(Math.floor((await usedBytes()) / 0.9));
    expect((await full.refreshShard('w1', 64)).memoryShare).toBeGreaterThan(0.8);
    await expect(suite.acceptor.accept(newEvent())).rejects.toMatchObject({ code: 'UNAVAILABLE', retryAfterSeconds: 10 });
    expect(await settle(await dequeue(), delivered)).toEqual([true]);
    await limited(Math.floor((await usedBytes()) / 0.77)).refreshShard('w1', 64);
    await expect(suite.acceptor.accept(newEvent())).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await limited(Math.floor((await usedBytes()) / 0.5)).refreshShard('w1', 64);
    await suite.acceptor.accept(newEvent());
  });

  test('a Redis that is getting full has no share without a limit', async () => {
    expect((await suite.queue.refreshShard('w1', 64)).memoryShare).toBeNull();
  });

  test('a Redis that is getting full says after each step of pruning how full it is', async () => {
    await suite.acceptor.accept(newEvent({ payload: Buffer.alloc(500_000) }));
    await settle(await dequeue(), delivered);
    const before = await usedBytes();
    const step = await limited(before * 2).prune({ finishedMs: 0, deadLettersMs: 1000 });
    expect(step.removed).toBe(1);
    expect(step.memoryShare).toBeLessThan(0.5);
  });
});

test('No reply to a worker has more than 2 MiB of payloads, however large those are that it takes, and it gets all of them.', async () => {
  const sizes = [...Array.from({ length: 10 }, () => 1_048_576), 10, 20];
  for (const [i, size] of sizes.entries())
    await suite.acceptor.accept(newEvent({ payload: Buffer.alloc(size, 'x'), destinations: [`dst_${i % 4}`] }));
  await settle(await dequeue(), { type: 'back' });
  const replies: number[] = [];
  const redis = new Proxy(suite.redis.client, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name);
      if (name !== 'callBuffer' || typeof member !== 'function') return typeof member === 'function' ? member.bind(target) : member;
      return async (...args: unknown[]) => {
        const reply: unknown = await member.apply(target, args);
        replies.push(bytesIn(reply));
        return reply;
      };
    },
  });
  const watched = new RedisDeliveryQueue({ redis, prefix });
  const jobs: Job[] = [];
  for (let more = await watched.dequeue('w1', 64); more.jobs.length > 0; more = await watched.dequeue('w1', 64)) jobs.push(...more.jobs);
  expect(jobs.map(({ event }) => event?.payload.length ?? 0).toSorted((one, other) => other - one)).toEqual([
    ...sizes.slice(0, 10),
    20,
    10,
  ]);
  expect(Math.max(...replies)).toBeGreaterThan(1_048_576);
  expect(Math.max(...replies)).toBeLessThan(2_200_000);
});

function bytesIn(reply: unknown): number {
  if (Array.isArray(reply)) return reply.reduce((sum: number, each) => sum + bytesIn(each), 0);
  return Buffer.isBuffer(reply) ? reply.length : 0;
}
