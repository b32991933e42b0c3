import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { RecordRegistry } from '../../../test/support/record-registry.ts';
import { organizationRecord } from '../../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import type { Target } from '../../data/queue/delivery-queue.ts';
import { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import { hashFields } from '../../data/shard/hash-fields.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import type { DeliveryPlan } from '../plans/delivery-plan.ts';
import { ShardSignals } from './shard-signals.ts';
import { TargetConfigSync } from './target-config-sync.ts';

const prefix = 'test:';
const retries = `${prefix}{s0}:due`;

let redis: RedisServer;
let queue: RedisDeliveryQueue;
/** Walks that began at the first entry, by their destinations. */
let walks: string[][];
/** Errors of the next calls of `endWaits`. */
let failures: Error[];
/** While it exists, walks for this destination are blocked. */
let stalled: { destinationId: string; goOn: Promise<void> } | null;

beforeAll(async () => {
  redis = await startRedis();
  queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  await queue.refreshShard('w1', 1000);
  walks = [];
  failures = [];
  stalled = null;
});

const counted: RedisDeliveryQueue = new Proxy({} as RedisDeliveryQueue, {
  get: (_, name) => {
    if (name !== 'endWaits') {
      const member: unknown = Reflect.get(queue, name);
      return typeof member === 'function' ? member.bind(queue) : member;
    }
    return async (targets: readonly Target[], cursor: string) => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      const names = targets.map(({ destinationId }) => destinationId);
      if (cursor === '0') walks.push(names);
      if (stalled !== null && names.includes(stalled.destinationId)) await stalled.goOn;
      return await queue.endWaits(targets, cursor);
    };
  },
});

const movesOn = (): Promise<DeliveryPlan> =>
  Promise.resolve({ state: 'paused', setting: targetSetting({ revision: '2', movesOn: 'all' }) });

function keeper(planOf: (target: Target) => Promise<DeliveryPlan> = movesOn): TargetConfigSync {
  const registry = new RecordRegistry();
  registry.put('organization', organizationRecord());
  return new TargetConfigSync({
    queue: counted,
    registry,
    clock: systemClock,
    logger: silentLogger,
    planOf,
    signals: new ShardSignals(),
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
  await eventually(async () => expect(await redis.client.zcard(retries)).toBe(0));
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
  // The next walk reads one step of the others.
  expect(await queue.endWaits(wanted, '0')).toEqual({ next: null });
});

test('a walk that Redis breaks off is made again by itself', async () => {
  const targets = await waiting({ dst_a: 2 });
  failures.push(new Error('the connection broke'));
  const failing = keeper();
  await expect(Promise.all(targets.map((target) => failing.configure(target)))).rejects.toThrow('the connection broke');
  expect(await redis.client.zcard(retries)).toBe(2);
  await eventually(async () => expect(await redis.client.zcard(retries)).toBe(0));
  failing.stop();
});

describe('while a walk for another target is under way', () => {
  const serving: DeliveryPlan = { state: 'paused', setting: targetSetting({ revision: '2' }) };
  let targets: Target[];
  let gate: PromiseWithResolvers<void>;
  let stopping: TargetConfigSync;
  let other: Promise<unknown>;

  const target = (destinationId: string): Target => {
    const found = targets.find((each) => each.destinationId === destinationId);
    if (found === undefined) throw new Error(`there is no target of ${destinationId}`);
    return found;
  };
  const revisionOf = (destinationId: string): Promise<string | null> =>
    redis.client.hget(`${prefix}{s0}:t:${target(destinationId).number}`, hashFields.target.revision);

  beforeEach(async () => {
    targets = await waiting({ dst_other: 2, dst_serves: 2, dst_own: 2 });
    await acceptOnly(redis.client, prefix, newEvent({ destinations: ['dst_fresh'] }));
    ({ targets } = await queue.targets(1));
    gate = Promise.withResolvers();
    stalled = { destinationId: 'dst_other', goOn: gate.promise };
    stopping = keeper((each) => (each.destinationId === 'dst_serves' ? Promise.resolve(serving) : movesOn()));
    other = stopping.configure(target('dst_other')).catch((error: unknown) => error);
    await eventually(() => expect(walks).toEqual([['dst_other']]));
  });
  afterEach(async () => {
    gate.resolve();
    await other;
    stopping.stop();
  });

  test.each([
    ['serves', 'dst_serves'],
    ['has no message that waits for its next attempt', 'dst_fresh'],
  ])('a target that %s has its setting at once', async (_, destinationId) => {
    await stopping.configure(target(destinationId));
    expect(await revisionOf(destinationId)).toBe('2');
    expect(walks).toEqual([['dst_other']]);
  });

  test('a review puts the settings of further targets in force', async () => {
    await redis.client.sadd(`${prefix}{s0}:paused`, target('dst_own').number);
    stopping.review();
    await eventually(async () => expect(await revisionOf('dst_own')).toBe('2'));
    await redis.client.sadd(`${prefix}{s0}:paused`, target('dst_fresh').number);
    stopping.review();
    await eventually(async () => expect(await revisionOf('dst_fresh')).toBe('2'));
  });

  test.each<[ends: string, end: () => void]>([
    ['succeeds', () => gate.resolve()],
    ['fails', () => gate.reject(new Error('the connection broke'))],
  ])('one whose own messages wait is done after its own walk, although the other %s', async (ends, end) => {
    const own = stopping.configure(target('dst_own'));
    await eventually(async () => expect(await revisionOf('dst_own')).toBe('2'));
    stalled = null;
    end();
    await own;
    expect(await redis.client.zrange(retries, '0', '-1')).not.toContainEqual(expect.stringMatching(`^${target('dst_own').number} `));
    expect(await other).toEqual(ends === 'fails' ? new Error('the connection broke') : undefined);
    await eventually(async () => expect(await redis.client.zcard(retries)).toBe(2));
  });
});
