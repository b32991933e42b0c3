import { setImmediate } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { type CronJobRecord, recordLayoutVersion } from '../../src/core/records.ts';
import { CronExecutions } from '../../src/data/cron/cron-executions.ts';
import { CronRuns } from '../../src/data/cron/cron-runs.ts';
import { CronScheduler } from '../../src/schedule/cron-scheduler.ts';
import { FakeClock } from './fake-clock.ts';
import { silentLogger } from './logger.ts';
import { RecordRegistry } from './record-registry.ts';

const zones = ['UTC', 'America/New_York', 'America/Sao_Paulo', 'Europe/Berlin', 'Africa/Cairo', 'Asia/Kolkata', 'Australia/Lord_Howe'];
const schedules = [
  (i: number) => `${i % 60} ${i % 24} * * *`,
  (i: number) => `*/${1 + (i % 30)} * * * *`,
  (i: number) => `${i % 60} 9-17 * * 1-5`,
  (i: number) => `0 ${i % 24} ${1 + (i % 28)} * ${i % 7}`,
  (i: number) => `${i % 60} ${i % 24} ${1 + (i % 28)} * *`,
];

/** Schedules of hours, days, weekdays and months, in zones of all kinds. */
export function manyCronJobs(count: number): CronJobRecord[] {
  const http = { url: 'http://127.0.0.1:9/', method: 'POST', headers: [], payload: '', timeoutMs: 1000, useStaticIp: false } as const;
  return Array.from({ length: count }, (_, i) => ({
    v: recordLayoutVersion,
    id: `cron_${i}`,
    org: 'org_a',
    slug: `job-${i}`,
    name: `job ${i}`,
    enabled: true,
    schedule: schedules[i % schedules.length]?.(i) ?? '',
    timeZone: zones[i % zones.length] ?? '',
    http: { ...http, headers: [] },
    generation: 1,
  }));
}

/** Starts a scheduler of these jobs, and stops it once it has the next slot of each. */
export async function startedOnce(jobs: readonly CronJobRecord[], redis: Redis, nowMs: number): Promise<void> {
  const registry = new RecordRegistry();
  for (const record of jobs) registry.put('cronJob', record);
  const shared = { redis, prefix: 'test:' };
  const clock = new FakeClock(nowMs);
  const stopping = new AbortController();
  const running = new CronScheduler({
    id: 's',
    registry,
    published: { ids: async () => jobs.map(({ id }) => id) },
    runs: new CronRuns(shared),
    executions: new CronExecutions(shared),
    clock,
    logger: silentLogger,
  }).run(stopping.signal);
  while (clock.pending === 0) await setImmediate();
  stopping.abort();
  await running;
}
