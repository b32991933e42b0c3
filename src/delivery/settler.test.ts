import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { newEvent } from '../../test/support/new-event.ts';
import { patientClock } from '../../test/support/patient-clock.ts';
import { delivered, takeFrom } from '../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { newTimedId } from '../core/ids.ts';
import { Pace } from '../core/pace.ts';
import type { Job } from '../data/delivery-queue.ts';
import { RedisMessageAcceptor } from '../data/message-acceptor.ts';
import { RedisDeliveryQueue } from '../data/redis-delivery-queue.ts';
import { systemClock } from '../runtime/clock.ts';
import { RedisTroubles } from './redis-trouble.ts';
import { Settler } from './settler.ts';

const prefix = 'test:';
let redis: RedisServer;
let queue: RedisDeliveryQueue;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  await queue.tend('w1', 1000);
});

async function jobsFor(destinations: readonly string[], org = 'org_a'): Promise<Job[]> {
  const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: patientClock });
  const targets = destinations.map((destinationId) => ({
    messageId: newTimedId('msg_', 0, Date.now()),
    routeId: 'rte_a',
    destinationId,
    shard: 0,
    maxAttempts: 3,
  }));
  await acceptor.accept({ ...newEvent({ targets }), org });
  const jobs: Job[] = [];
  while (jobs.length < destinations.length) jobs.push(...(await takeFrom(queue, 'w1', 64)));
  return jobs;
}

/** How many settlements each call had. */
async function callsFor(jobs: readonly Job[]): Promise<number[]> {
  const calls: number[] = [];
  const settled: boolean[] = [];
  const settler = new Settler({
    queue: {
      settle: (worker, settlements, options) => {
        calls.push(settlements.length);
        return queue.settle(worker, settlements, options);
      },
    },
    worker: 'w1',
    clock: systemClock,
    trouble: new RedisTroubles(silentLogger).watch(),
    heldBack: () => null,
    pace: new Pace({ clock: systemClock, pausesPerScript: () => 0 }),
    onSettled: (_, answer) => void settled.push(...answer.settled),
  });
  for (const job of jobs) settler.add({ job, outcome: delivered, maxAttempts: null });
  await settler.drain(AbortSignal.timeout(60_000));
  expect(settled).toEqual(jobs.map(() => true));
  return calls;
}

test('what attempts at few destinations came to is written in one call, and at many in calls for 32 of them', async () => {
  const few = Array.from({ length: 60 }, (_, i) => `dst_${i % 10}`);
  expect(await callsFor(await jobsFor(few))).toEqual([60]);
  const many = Array.from({ length: 60 }, (_, i) => `dst_${i}`);
  expect(await callsFor(await jobsFor(many))).toEqual([32, 28]);
});

describe('of an organization that is held back', () => {
  /** A settler whose every call takes 10 ms of a time that stands still otherwise, and what it called. */
  function heldBackSettler() {
    const clock = new FakeClock(0);
    const calls: [org: string | undefined, settlements: number, atMs: number][] = [];
    const settler = new Settler({
      queue: {
        settle: async (_, settlements) => {
          calls.push([settlements[0]?.job.target.org, settlements.length, clock.now()]);
          await clock.sleep(10);
          const settled = settlements.map(() => true);
          return { settled, hasMore: false, nextDueMs: null, hasOutbox: false, hasEndedBatches: false, hasEnds: false };
        },
      },
      worker: 'w1',
      clock,
      trouble: new RedisTroubles(silentLogger).watch(),
      heldBack: () => 'org_mass',
      pace: new Pace({ clock, pausesPerScript: () => 2 }),
      onSettled: () => {},
    });
    const add = (jobs: readonly Job[]): void => {
      for (const job of jobs) settler.add({ job, outcome: delivered, maxAttempts: null });
    };
    return { clock, calls, settler, add };
  }
  const massOf = (count: number): Promise<Job[]> =>
    jobsFor(
      Array.from({ length: count }, (_, i) => `dst_${i}`),
      'org_mass',
    );

  test('few are written at a time, with pauses, and those of others meanwhile', async () => {
    const { clock, calls, add } = heldBackSettler();
    const others = await jobsFor(['dst_other']);
    add(await massOf(19));
    await clock.advance(5);
    add(others);
    await clock.advance(100);
    expect(calls).toEqual([
      ['org_mass', 8, 2],
      ['org_a', 1, 7],
      ['org_mass', 8, 32],
      ['org_mass', 3, 62],
    ]);
  });

  test('a call has all that has ended when it is its turn', async () => {
    const { clock, calls, add } = heldBackSettler();
    const mass = await massOf(7);
    add(mass.slice(0, 1));
    await clock.advance(5);
    add(mass.slice(1, 4));
    await clock.advance(10);
    add(mass.slice(4));
    await clock.advance(100);
    expect(calls).toEqual([
      ['org_mass', 1, 2],
      ['org_mass', 6, 32],
    ]);
  });

  test('what exceeds 128 that wait is written at once', async () => {
    const { clock, calls, add } = heldBackSettler();
    add(await massOf(140));
    await clock.advance(3);
    expect(calls).toEqual([
      ['org_mass', 8, 0],
      ['org_mass', 12, 2],
    ]);
  });

  test('a worker that ends pauses no more', async () => {
    const { clock, calls, settler, add } = heldBackSettler();
    add(await massOf(20));
    const drained = settler.drain(AbortSignal.timeout(30_000));
    await clock.advance(30);
    await drained;
    expect(calls).toEqual([
      ['org_mass', 8, 0],
      ['org_mass', 8, 10],
      ['org_mass', 4, 20],
    ]);
  });
});
