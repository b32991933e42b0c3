import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { eventually } from '../../../test/support/eventually.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { CronRuns } from '../../data/cron/cron-runs.ts';
import type { SpecInputOf } from '../../resources/kinds.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { MemoryStore } from '../../store/memory/memory-store.ts';
import { createStoreMetrics } from '../../store/metrics.ts';
import { controllerCaches } from '../controller-caches.ts';
import { idOf } from '../held-ids.ts';
import { runScheduleStatus } from './schedule-status.ts';

const prefix = 'test:';
const startMs = Date.UTC(2025, 2, 29, 20, 0, 10);
const minuteMs = 60_000;
let redis: RedisServer;
let runs: CronRuns;
let store: MemoryStore;
let clock: FakeClock;
let stopping: AbortController;
let running: Promise<unknown>;

beforeAll(async () => {
  redis = await startRedis();
  runs = new CronRuns({ redis: redis.client, prefix });
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  store = new MemoryStore(systemClock);
  await store.apply({ kind: 'Namespace', metadata: { name: 'acme' } }, { manager: 'test' });
  clock = new FakeClock(startMs);
  stopping = new AbortController();
  const shared = { store, logger: silentLogger };
  const caches = controllerCaches({ servedInstallation: null, ...shared, clock: systemClock, metrics: createStoreMetrics(new Registry()) });
  const following = caches.run(stopping.signal);
  await caches.synced;
  running = Promise.all([following, runScheduleStatus({ ...shared, caches, cronRuns: runs, clock }, stopping.signal)]);
});
afterEach(async () => {
  stopping.abort();
  await running;
});

const key = { namespace: 'acme', name: 'report' };
const apply = (spec: Partial<SpecInputOf<'HttpCronJob'>> = {}) =>
  store.apply(
    {
      kind: 'HttpCronJob',
      metadata: key,
      spec: { schedule: '30 6 * * *', timeZone: 'Europe/Berlin', url: 'https://a.example/', ...spec },
    },
    { manager: 'test', force: true },
  );
async function run(slotMs: number): Promise<void> {
  const jobId = idOf('HttpCronJob', await store.get('HttpCronJob', key));
  await runs.seen([{ id: jobId, revision: 'r' }], slotMs - 1);
  expect(await runs.claim([{ id: `exec_${slotMs}`, jobId, org: 'org_a', slotMs, timeoutMs: 1000, revision: 'r' }])).toBe(1);
  // One that waits would be the only one.
  const { runs: taken } = await runs.take(`worker.${slotMs}`, 1, []);
  for (const { id } of taken) await runs.release(id);
}
/** The last and the next time, once time has gone on by so much and what follows from it is written. */
async function times(afterMs: number): Promise<unknown[]> {
  for (let left = afterMs; left > 0; left -= minuteMs) await clock.advance(Math.min(left, minuteMs));
  const { status } = await store.get('HttpCronJob', key);
  return [status?.lastScheduleTime, status?.nextScheduleTime];
}
const become = (expected: unknown[]) => eventually(async () => expect(await times(minuteMs)).toEqual(expected));

test('the status of a cron job has its last and its next slot, over a change of the clocks too', async () => {
  await apply();
  // The clocks of Berlin go forward in this night.
  await become([undefined, '2025-03-30T04:30:00Z']);
  await run(Date.UTC(2025, 2, 29, 5, 30));
  await become(['2025-03-29T05:30:00Z', '2025-03-30T04:30:00Z']);
});

test('a job that is disabled, or suspended by the plan, has no next time', async () => {
  await apply();
  await become([undefined, '2025-03-30T04:30:00Z']);
  await apply({ enabled: false });
  await become([undefined, undefined]);
  await apply();
  await become([undefined, '2025-03-30T04:30:00Z']);
  const suspended = { type: 'Programmed', status: 'False', reason: 'Suspended', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
  await store.applyStatus('HttpCronJob', key, { conditions: [suspended] }, { manager: 'posthorn-status' });
  await eventually(async () => expect(await times(6 * minuteMs)).toEqual([undefined, undefined]));
});

test('what runs each minute is written once in five minutes', async () => {
  await apply({ schedule: '* * * * *', timeZone: 'UTC' });
  await run(startMs - 10_000);
  await eventually(async () => expect((await times(minuteMs))[0]).toBe('2025-03-29T20:00:00Z'));
  const versions = new Set<string>();
  const beganMs = clock.now();
  while (clock.now() < beganMs + 20 * minuteMs) {
    await run(clock.now());
    await times(minuteMs);
    versions.add((await store.get('HttpCronJob', key)).metadata.resourceVersion);
  }
  expect(versions.size).toBeGreaterThan(1);
  expect(versions.size).toBeLessThanOrEqual(5);
});
