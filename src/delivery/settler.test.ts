import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { silentLogger } from '../../test/support/logger.ts';
import { newEvent } from '../../test/support/new-event.ts';
import { patientClock } from '../../test/support/patient-clock.ts';
import { delivered, takeFrom } from '../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { newTimedId } from '../core/ids.ts';
import type { Job } from '../data/delivery-queue.ts';
import { RedisMessageAcceptor } from '../data/message-acceptor.ts';
import { RedisDeliveryQueue } from '../data/redis-delivery-queue.ts';
import { systemClock } from '../runtime/clock.ts';
import { Pace } from './pace.ts';
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

/** Of each call the organization of its settlements, and how many they were. */
async function callsFor(jobs: readonly Job[], heldBack: string | null = null): Promise<[org: string, settlements: number][]> {
  const calls: [string, number][] = [];
  const settled: boolean[] = [];
  const settler = new Settler({
    queue: {
      settle: (worker, settlements, options) => {
        calls.push([[...new Set(settlements.map(({ job }) => job.target.org))].join(), settlements.length]);
        return queue.settle(worker, settlements, options);
      },
    },
    worker: 'w1',
    clock: systemClock,
    trouble: new RedisTroubles(silentLogger).watch(),
    pace: new Pace({ clock: systemClock, heldBack: () => heldBack }),
    onSettled: (_, answer) => void settled.push(...answer.settled),
  });
  for (const job of jobs) settler.add({ job, outcome: delivered, maxAttempts: null });
  await settler.drain(AbortSignal.timeout(60_000));
  expect(settled).toEqual(jobs.map(() => true));
  return calls;
}

test('what attempts at few destinations came to is written in one call, and at many in calls for 32 of them', async () => {
  const few = Array.from({ length: 60 }, (_, i) => `dst_${i % 10}`);
  expect(await callsFor(await jobsFor(few))).toEqual([['org_a', 60]]);
  const many = Array.from({ length: 60 }, (_, i) => `dst_${i}`);
  expect(await callsFor(await jobsFor(many))).toEqual([
    ['org_a', 32],
    ['org_a', 28],
  ]);
});

test('of an organization that is held back few are written at a time, and those of others meanwhile', async () => {
  const mass = await jobsFor(
    Array.from({ length: 36 }, (_, i) => `dst_${i}`),
    'org_mass',
  );
  const others = await jobsFor(['dst_other']);
  expect(await callsFor([...mass, ...others], 'org_mass')).toEqual([
    ['org_a', 1],
    ['org_mass', 12],
    ['org_mass', 12],
    ['org_mass', 12],
  ]);
});
