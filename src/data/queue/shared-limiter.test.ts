import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { delivered, settleAll } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import type { SharedLimiter } from './delivery-queue.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const hour = { ms: 3_600_000, most: 1_000_000 };
let redis: RedisServer;
let queues: RedisDeliveryQueue[];
let acceptor: RedisMessageAcceptor;

beforeAll(async () => {
  redis = await startRedis();
  queues = [0, 1].map(() => new RedisDeliveryQueue({ redis: redis.client, prefix }));
  acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  await queues[0]?.refreshShard('w0', 1000);
});

interface Given {
  endpoint: string;
  /** The script that gave it out ran between these two. */
  beforeMs: number;
  afterMs: number;
}

const limiter = (windows: SharedLimiter['windows'], revision = 1): SharedLimiter => ({ id: 'app_a', revision, windows });

/** One look of each worker: takes what it gets, delivers it. */
async function round(shared: (endpoint: string) => SharedLimiter | null): Promise<Given[]> {
  const given = await Promise.all(
    queues.map(async (queue, i) => {
      const worker = `w${i}`;
      await queue.promote();
      const beforeMs = Date.now();
      const { jobs, unconfigured } = await queue.dequeue(worker, 64);
      const afterMs = Date.now();
      for (const target of unconfigured) {
        const setting = { sharedLimiter: shared(target.destinationId) };
        await queue.configure(target, targetSetting(setting));
      }
      await settleAll(queue, worker, jobs, delivered);
      return jobs.map(({ target }): Given => ({ endpoint: target.destinationId, beforeMs, afterMs }));
    }),
  );
  return given.flat();
}

async function accept(endpoints: readonly string[], each: number): Promise<void> {
  for (let i = 0; i < each; i++) await acceptor.accept(newEvent({ destinations: [...endpoints] }));
}

async function takeUntil(count: number, shared: (endpoint: string) => SharedLimiter | null): Promise<Given[]> {
  const given: Given[] = [];
  for (const deadline = Date.now() + 60_000; given.length < count; ) {
    if (Date.now() > deadline) throw new Error(`${given.length} of ${count} messages were given out`);
    given.push(...(await round(shared)));
  }
  return given;
}

const endpoints = Array.from({ length: 12 }, (_, i) => `ep_${i}`);

test('an application gets no more than its limits over all its endpoints and workers in any window, and what they allow', async () => {
  const windows = [{ ms: 100, most: 9 }, { ms: 400, most: 24 }, hour];
  await accept(endpoints, 10);
  const startedAtMs = Date.now();
  const given = await takeUntil(120, () => limiter(windows));
  const tookMs = Date.now() - startedAtMs;
  for (const { ms, most } of windows) {
    for (const [i, first] of given.entries()) {
      const next = given[i + most];
      if (next !== undefined) expect(next.afterMs - first.beforeMs).toBeGreaterThanOrEqual(ms);
    }
  }
  expect(tookMs).toBeGreaterThanOrEqual(1600);
});

test('the endpoints of an application that is at its limit take turns', async () => {
  await accept(endpoints, 20);
  const given = await takeUntil(96, () => limiter([{ ms: 100, most: 5 }]));
  const counts = endpoints.map((endpoint) => given.slice(0, 96).filter((each) => each.endpoint === endpoint).length);
  expect(Math.min(...counts)).toBeGreaterThanOrEqual(6);
  expect(Math.max(...counts)).toBeLessThanOrEqual(10);
});

test('an application at its limit holds up no other target', async () => {
  await accept(endpoints, 3);
  await accept(['ep_other'], 50);
  const given = await takeUntil(52, (endpoint) => (endpoint === 'ep_other' ? null : limiter([{ ms: 3_600_000, most: 2 }])));
  expect(given.filter(({ endpoint }) => endpoint === 'ep_other')).toHaveLength(50);
});

test('a limit that a thousand endpoints share is held to, and holds up no other target', async () => {
  const many = Array.from({ length: 1000 }, (_, i) => `ep_${i}`);
  for (let i = 0; i < many.length; i += 100) await accept(many.slice(i, i + 100), 1);
  await accept(['ep_other'], 20);
  const shared = limiter([{ ms: 3_600_000, most: 5 }]);
  const given = await takeUntil(25, (endpoint) => (endpoint === 'ep_other' ? null : shared));
  for (let i = 0; i < 5; i++) given.push(...(await round(() => shared)));
  expect(given.filter(({ endpoint }) => endpoint === 'ep_other')).toHaveLength(20);
  expect(new Set(given.map(({ endpoint }) => endpoint)).size).toBe(6);
  await queues[0]?.configureShared('app_a', limiter([hour], 2));
  const rest = await takeUntil(995, () => limiter([hour], 2));
  expect(new Set([...given, ...rest].map(({ endpoint }) => endpoint)).size).toBe(1001);
  expect(given.length + rest.length).toBe(1020);
});

test('a limit that is raised lets those continue that wait, and one of an older revision changes nothing', async () => {
  await accept(endpoints, 1);
  await takeUntil(2, () => limiter([{ ms: 3_600_000, most: 2 }], 2));
  for (let i = 0; i < 5; i++) expect(await round(() => null)).toEqual([]);
  await queues[0]?.configureShared('app_a', limiter([hour], 1));
  for (let i = 0; i < 3; i++) expect(await round(() => null)).toEqual([]);
  await queues[0]?.configureShared('app_a', limiter([{ ms: 3_600_000, most: 9 }], 3));
  await takeUntil(7, () => null);
  for (let i = 0; i < 3; i++) expect(await round(() => null)).toEqual([]);
  await queues[1]?.configureShared('app_a', null);
  await takeUntil(3, () => null);
});

test('a limiter that is not in use is not made by a change, and the purge of the organization leaves nothing of one', async () => {
  await queues[0]?.configureShared('app_b', { ...limiter([hour]), id: 'app_b' });
  expect(await redis.client.keys('*app_b*')).toEqual([]);
  await accept(endpoints, 2);
  await takeUntil(3, () => limiter([{ ms: 3_600_000, most: 3 }]));
  await new RedisMessagePurger({ redis: redis.client, prefix }).purgeOrganization('org_a', new AbortController().signal);
  expect(await redis.client.keys('*app_a*')).toEqual([]);
  expect(await redis.client.zcard(`${prefix}{s0}:waiting`)).toBe(0);
});
