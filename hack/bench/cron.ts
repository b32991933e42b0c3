// Schedules of cron jobs: the cost of the next slots of many jobs, alone and when a scheduler starts, with the longest turn of its event loop.
//   node hack/bench/cron.ts [jobs]
// Prints one table. Redis shares the cores.
import { parseCronExpression } from '../../src/core/cron-expression.ts';
import { nextCronSlot } from '../../src/core/cron-slots.ts';
import { longestTurnMs } from '../../test/support/longest-turn.ts';
import { manyCronJobs, startedOnce } from '../../test/support/many-cron-jobs.ts';
import { startRedis } from '../../test/support/redis.ts';
import { ms, report } from './lib/report.ts';

const [count = 10_000] = process.argv.slice(2).map(Number);

const jobs = manyCronJobs(count);
const nowMs = Date.now();
const processorMs = (before: NodeJS.CpuUsage): number => {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
};
const slots = (some: typeof jobs): number => {
  const before = process.cpuUsage();
  for (const { schedule, timeZone } of some) nextCronSlot(parseCronExpression(schedule), timeZone, nowMs);
  return processorMs(before);
};
const leapDays = jobs.map((job, i) => ({ ...job, schedule: `${i % 60} ${i % 24} 29 2 *` }));
const [allMs, leapMs] = [slots(jobs), slots(leapDays)];
const redis = await startRedis();
try {
  let startMs = 0;
  const longestMs = await longestTurnMs(async () => {
    const before = process.cpuUsage();
    await startedOnce(jobs, redis.client, nowMs);
    startMs = processorMs(before);
  });
  report(count === 10_000 ? 'cron' : null, `next slots of ${count} cron jobs, processor time`, [
    ['read and computed, schedules of hours, days, weekdays and months', ms(allMs)],
    ['read and computed, all of 29 February', ms(leapMs)],
    ['start of a scheduler, with what Redis is asked', ms(startMs)],
    ['longest turn of its event loop', ms(longestMs)],
  ]);
} finally {
  await redis.stop();
}
