import { afterAll, beforeAll, test } from '@jest/globals';
import { manyCronJobs, startedOnce } from '../../test/support/many-cron-jobs.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { expectShortTurns } from '../../test/support/short-work.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const nowMs = Date.UTC(2025, 10, 26, 12, 0, 17);
test.each([
  ['ten thousand jobs', manyCronJobs(10_000)],
  ['a thousand jobs of 29 February', manyCronJobs(1000).map((job, i) => ({ ...job, schedule: `${i % 60} ${i % 24} 29 2 *` }))],
])(
  '%s have their next slots in short turns',
  async (_, jobs) => {
    await expectShortTurns(50, () => startedOnce(jobs, redis.client, nowMs));
  },
  120_000,
);
