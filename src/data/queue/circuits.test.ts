import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { assertProperty } from '../../../test/support/property.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { type Circuit, circuitAfter, newCircuit } from '../../core/circuit.ts';
import type { NewAttempt } from '../shard/attempt-record.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { CircuitFeed } from './circuit-feed.ts';
import { Circuits } from './circuits.ts';
import type { Job, Settlement, Target } from './delivery-queue.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const key = `${prefix}{s0}:t:1`;
const cooldownSeconds = 3600;
const good: NewAttempt = { startedAtMs: 1, durationMs: 5, responseStatus: 200, responseBody: '', errorType: null, errorMessage: null };
const bad: NewAttempt = { ...good, responseStatus: 500, errorType: 'http_error' };
let redis: RedisServer;
let queue: RedisDeliveryQueue;
let circuits: Circuits;
let acceptor: RedisMessageAcceptor;

beforeAll(async () => {
  redis = await startRedis();
  queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  circuits = new Circuits({ redis: redis.client, prefix });
  acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  await queue.refreshShard('w1', 1000);
});

/** The first target of the shard with a circuit of this setting, made by a message that is delivered. */
async function makeTarget(setting: { failureThreshold: number; probeSuccessThreshold: number }): Promise<Target> {
  await acceptor.accept(newEvent());
  const [target] = (await queue.targets(1)).targets;
  if (target === undefined) throw new Error('there is no target');
  await queue.configure(target, targetSetting({ circuit: { ...setting, cooldownSeconds } }));
  await settle(await take(), null);
  return target;
}
async function take(): Promise<Job> {
  const { jobs } = await queue.dequeue('w1', 1);
  const [job] = jobs;
  if (job === undefined) throw new Error('there is no work');
  return job;
}
async function settle(job: Job, attempt: NewAttempt | null): Promise<void> {
  await queue.settle('w1', [ended(job, attempt)]);
}
function ended(job: Job, attempt: NewAttempt | null): Settlement {
  return { job, outcome: { type: 'dead', attempt, reason: 'max_retries_exceeded' }, maxAttempts: null };
}

/** A cooldown that is over. */
async function endCooldown(): Promise<void> {
  await redis.client.hset(key, hashFields.target.cooldownEndMs, 0);
  await redis.client.zadd(`${prefix}{s0}:waiting`, 0, '!1');
}

/** `attempts`: what they came to, all settled by one script. */
type Step = { do: 'attempts'; results: { succeeds: boolean; isStale: boolean }[] } | { do: 'cooldown' } | { do: 'reset' };
const results = fc.array(fc.record({ succeeds: fc.boolean(), isStale: fc.boolean() }), { minLength: 1, maxLength: 4 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('attempts' as const), results }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('cooldown' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reset' as const) }) },
);

test('the scripts move a circuit as the state machine says', async () => {
  await assertProperty(
    fc.asyncProperty(
      fc.record({ failureThreshold: fc.integer({ min: 1, max: 3 }), probeSuccessThreshold: fc.integer({ min: 1, max: 3 }) }),
      fc.array(step, { maxLength: 25, size: 'max' }),
      async (setting, steps) => {
        await redis.client.flushall();
        await queue.refreshShard('w1', 1000);
        await makeTarget(setting);
        let expected: Circuit = newCircuit;
        for (const each of steps) {
          if (each.do === 'reset') {
            await circuits.reset('org_a', 'rte_a', ['dst_a']);
            expected = circuitAfter(expected, { type: 'reset' }, { ...setting, cooldownSeconds });
          } else if (each.do === 'cooldown') {
            if (expected.state === 'open') await endCooldown();
            await queue.promote();
            expected = circuitAfter(expected, { type: 'tick', atMs: Number.MAX_SAFE_INTEGER }, { ...setting, cooldownSeconds });
          } else if (expected.state !== 'open') {
            for (const _ of each.results) await acceptor.accept(newEvent());
            // Half open it leases no more than probes.
            const { jobs } = await queue.dequeue('w1', each.results.length);
            expect(jobs.map(({ target }) => target.circuitGeneration)).toEqual(jobs.map(() => expected.generation));
            const settlements = jobs.map((job, i) => {
              const { succeeds = false, isStale = false } = each.results[i] ?? {};
              const generation = job.target.circuitGeneration - (isStale ? 1 : 0);
              const event = { type: succeeds ? ('succeeded' as const) : ('failed' as const), generation, atMs: 0 };
              if (generation >= 0) expected = circuitAfter(expected, event, { ...setting, cooldownSeconds });
              return ended({ ...job, target: { ...job.target, circuitGeneration: generation } }, succeeds ? good : bad);
            });
            expect(settlements).not.toEqual([]);
            await queue.settle('w1', settlements);
          }
          const [circuit] = await circuits.ofRoute('org_a', 'rte_a', ['dst_a']);
          expect(circuit).toMatchObject({
            state: expected.state,
            consecutiveFailures: expected.consecutiveFailures,
            probeSuccesses: expected.probeSuccesses,
          });
          expect(Number((await redis.client.hget(key, hashFields.target.circuitGeneration)) ?? 0)).toBe(expected.generation);
          expect(await circuits.broken()).toHaveLength(expected.state === 'closed' ? 0 : 1);
        }
      },
    ),
    60,
  );
});

test('an attempt that began before the circuit opened and ends in half_open moves nothing', async () => {
  await makeTarget({ failureThreshold: 1, probeSuccessThreshold: 1 });
  for (let i = 0; i < 3; i++) await acceptor.accept(newEvent());
  const early = await take();
  await settle(await take(), bad);
  await endCooldown();
  await queue.promote();
  expect((await circuits.broken())[0]?.state).toBe('half_open');
  await settle(early, bad);
  expect((await circuits.broken())[0]?.state).toBe('half_open');
  await settle(await take(), good);
  expect(await circuits.broken()).toEqual([]);
});

test('no more probes are under way than close the circuit', async () => {
  await makeTarget({ failureThreshold: 1, probeSuccessThreshold: 2 });
  for (let i = 0; i < 10; i++) await acceptor.accept(newEvent());
  await settle(await take(), bad);
  expect((await queue.dequeue('w1', 64)).jobs).toHaveLength(0);
  await endCooldown();
  await queue.promote();
  const { jobs } = await queue.dequeue('w1', 64);
  expect(jobs).toHaveLength(2);
  expect((await queue.dequeue('w1', 64)).jobs).toHaveLength(0);
  const [first, second] = jobs;
  if (first === undefined || second === undefined) throw new Error('there are no probes');
  await settle(first, good);
  expect((await queue.dequeue('w1', 64)).jobs).toHaveLength(1);
  await settle(second, good);
  expect(await circuits.broken()).toEqual([]);
});

test('a probe whose time is over leaves its place to another, though its worker never settled', async () => {
  await makeTarget({ failureThreshold: 1, probeSuccessThreshold: 2 });
  for (let i = 0; i < 10; i++) await acceptor.accept(newEvent());
  await settle(await take(), bad);
  await endCooldown();
  await queue.promote();
  const { jobs } = await queue.dequeue('w1', 64);
  const [lost, settled] = jobs;
  if (lost === undefined || settled === undefined) throw new Error('there are no probes');
  await redis.client.zadd(`${prefix}{s0}:probe:1`, 'XX', Date.now() - 1, lost.handle);
  await settle(settled, good);
  expect((await queue.dequeue('w2', 64)).jobs).toHaveLength(2);
});

/** Results of one check, and the maximum under way then: one, and twice as many for each second since. */
async function dequeueOnRamp(beganAtMs: number): Promise<{ jobs: number; most: number }> {
  const { jobs } = await queue.dequeue('w1', 64);
  return { jobs: jobs.length, most: 2 ** Math.floor((Date.now() - beganAtMs) / 1000) };
}

test('after closing, what waits drains with a ramp', async () => {
  await makeTarget({ failureThreshold: 1, probeSuccessThreshold: 1 });
  for (let i = 0; i < 200; i++) await acceptor.accept(newEvent());
  await settle(await take(), bad);
  await circuits.reset('org_a', 'rte_a', ['dst_a']);
  const beganAtMs = Number(await redis.client.hget(key, hashFields.target.rampBeganMs));
  const first = await dequeueOnRamp(beganAtMs);
  expect(first.jobs).toBeGreaterThanOrEqual(1);
  expect(first.jobs).toBeLessThanOrEqual(first.most);
  await redis.client.hset(key, hashFields.target.rampBeganMs, beganAtMs - 3000);
  await redis.client.hdel(key, hashFields.target.blockedBy);
  await acceptor.accept(newEvent());
  const second = await dequeueOnRamp(beganAtMs - 3000);
  expect(first.jobs + second.jobs).toBeGreaterThanOrEqual(8);
  expect(first.jobs + second.jobs).toBeLessThanOrEqual(second.most);
});

test('a clock that was set back after a circuit closed lets the ramp restart', async () => {
  await makeTarget({ failureThreshold: 1, probeSuccessThreshold: 1 });
  await acceptor.accept(newEvent());
  const aheadMs = Date.now() + 3_600_000;
  await redis.client.hset(key, hashFields.target.rampBeganMs, aheadMs);
  expect((await queue.dequeue('w1', 1)).jobs).toHaveLength(1);
  expect(Number(await redis.client.hget(key, hashFields.target.rampBeganMs))).toBeLessThan(aheadMs);
});

test('a message that has waited 72 hours for its circuit is a dead letter of the circuit', async () => {
  await makeTarget({ failureThreshold: 1, probeSuccessThreshold: 1 });
  await acceptor.accept(newEvent());
  await acceptor.accept(newEvent());
  await settle(await take(), bad);
  const [member] = (await redis.client.keys(`${prefix}{s0}:m:*`)).filter(Boolean);
  expect(member).toBeDefined();
  const longAgo = Date.now() - 73 * 3_600_000;
  await redis.client.hset(key, hashFields.target.outageBeganMs, longAgo, hashFields.target.cooldownEndMs, 0);
  for (const message of await redis.client.keys(`${prefix}{s0}:m:*`))
    await redis.client.hset(message, hashFields.message.indexStamp, `${longAgo}-1`);
  await redis.client.zadd(`${prefix}{s0}:waiting`, 0, '!1');
  await queue.promote();
  const reasons = await Promise.all(
    (await redis.client.keys(`${prefix}{s0}:m:*`)).map((message) => redis.client.hget(message, hashFields.message.deadLetterReason)),
  );
  expect(reasons.filter((reason) => reason === 'circuit_breaker_exhausted')).toHaveLength(1);
});

test('transitions can be followed', async () => {
  const blocking = redis.client.duplicate({ commandTimeout: undefined });
  const feed = new CircuitFeed({ redis: redis.client, readers: [{ blocking, shards: [0] }], prefix });
  try {
    await makeTarget({ failureThreshold: 1, probeSuccessThreshold: 1 });
    const position = await feed.head();
    const read = feed.after(position);
    await acceptor.accept(newEvent());
    await settle(await take(), bad);
    expect((await read).transitions).toMatchObject([{ routeId: 'rte_a', destinationId: 'dst_a', state: 'open', consecutiveFailures: 1 }]);
  } finally {
    feed.close();
  }
});
