import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { delivered, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newTimedId } from '../../core/ids.ts';
import type { Job } from '../../data/queue/delivery-queue.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { RedisBackoffs } from '../loops/redis-backoff.ts';
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
  await queue.refreshShard('w1', 1000);
});

async function jobsFor(destinations: readonly string[], org = 'org_a'): Promise<Job[]> {
  const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
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
    backoff: new RedisBackoffs(silentLogger).watch(),
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
