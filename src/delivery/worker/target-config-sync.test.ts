import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { passes } from '../../../test/support/passes.ts';
import { failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { organizationRecord, RecordRegistry } from '../../../test/support/record-registry.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import type { DeliveryQueue, Target } from '../../data/queue/delivery-queue.ts';
import { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { DeliveryPlan } from '../plans/delivery-plan.ts';
import { TargetConfigSync } from './target-config-sync.ts';

const prefix = 'test:';
const retries = `${prefix}{s0}:due`;

let redis: RedisServer;
let queue: RedisDeliveryQueue;
/** Walks that began at the first entry, by their destinations. */
let walks: string[][];
/** What the next calls of `endWaits` fail with. */
let failures: Error[];

beforeAll(async () => {
  redis = await startRedis();
  queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  await queue.tend('w1', 1000);
  walks = [];
  failures = [];
});

const counted: DeliveryQueue = new Proxy({} as DeliveryQueue, {
  get: (_, name) => {
    if (name !== 'endWaits') {
      const member: unknown = Reflect.get(queue, name);
      return typeof member === 'function' ? member.bind(queue) : member;
    }
    return async (targets: readonly Target[], cursor: string) => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      if (cursor === '0') walks.push(targets.map(({ destinationId }) => destinationId));
      return await queue.endWaits(targets, cursor);
    };
  },
});

const movesOn = (): Promise<DeliveryPlan> =>
  Promise.resolve({ state: 'paused', setting: targetSetting({ revision: '2', movesOn: 'all' }) });

function keeper(planOf = movesOn): TargetConfigSync {
  const registry = new RecordRegistry();
  registry.put('organization', organizationRecord());
  const nothing = (): void => {};
  return new TargetConfigSync({
    queue: counted,
    registry,
    clock: systemClock,
    logger: silentLogger,
    planOf,
    onChange: nothing,
    carryOutbox: nothing,
  });
}

/** Messages that wait for an hour for their next attempt, so many at each destination. */
async function waiting(counts: Record<string, number>): Promise<Target[]> {
  for (const [destinationId, count] of Object.entries(counts))
    for (let k = 0; k < count; k++) await acceptOnly(redis.client, prefix, newEvent({ destinations: [destinationId] }));
  for (let jobs = await takeFrom(queue, 'w1', 64); jobs.length > 0; jobs = await takeFrom(queue, 'w1', 64))
    await settleAll(queue, 'w1', jobs, { type: 'retry', attempt: failure, delayMs: 3_600_000 });
  return (await queue.targets(1)).targets;
}

test('one walk over the retries is for all targets that stop serving at a time', async () => {
  const names = Array.from({ length: 30 }, (_, k) => `dst_${k}`);
  const targets = await waiting({ ...Object.fromEntries(names.map((name) => [name, 1])), dst_serves: 3 });
  const stopping = keeper();
  await Promise.all(targets.filter(({ destinationId }) => destinationId !== 'dst_serves').map((target) => stopping.configure(target)));
  expect(walks.flat().sort()).toEqual([...names].sort());
  expect(walks.length).toBeLessThanOrEqual(3);
  expect(await redis.client.zcard(retries)).toBe(3);
});

test('a review that finds many such targets walks once', async () => {
  const targets = await waiting({ dst_a: 1, dst_b: 2, dst_c: 1 });
  for (const { number } of targets) await redis.client.sadd(`${prefix}{s0}:paused`, number);
  const reviewing = keeper();
  reviewing.start();
  await passes(async () => expect(await redis.client.zcard(retries)).toBe(0));
  reviewing.stop();
  expect(walks.map((each) => each.sort())).toEqual([['dst_a', 'dst_b', 'dst_c']]);
});

test.each([
  ['few retries among many', { dst_a: 2, dst_b: 400 }],
  ['all retries', { dst_a: 300, dst_b: 0 }],
])('a walk for a target that has %s ends once none of it waits', async (_, counts) => {
  const targets = await waiting(counts);
  const wanted = targets.filter(({ destinationId }) => destinationId === 'dst_a');
  for (const target of wanted) await keeper().configure(target);
  expect(await redis.client.zcard(retries)).toBe(counts.dst_b);
  // Whoever walks for it now looks at one step of the others.
  expect(await queue.endWaits(wanted, '0')).toEqual({ next: null });
});

test('a walk that Redis breaks off is made again by itself', async () => {
  const targets = await waiting({ dst_a: 2 });
  failures.push(new Error('the connection broke'));
  const failing = keeper();
  await expect(Promise.all(targets.map((target) => failing.configure(target)))).rejects.toThrow('the connection broke');
  expect(await redis.client.zcard(retries)).toBe(2);
  await passes(async () => expect(await redis.client.zcard(retries)).toBe(0));
  failing.stop();
});
