import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { type CronExecution, CronExecutions } from './cron-executions.ts';
import { CronRuns } from './cron-runs.ts';

const prefix = 'test:';
const noon = Date.UTC(2025, 0, 1, 12, 0, 30);
let redis: RedisServer;
let runs: CronRuns;
let executions: CronExecutions;

beforeAll(async () => {
  redis = await startRedis();
  runs = new CronRuns({ redis: redis.client, prefix });
  executions = new CronExecutions({ redis: redis.client, prefix });
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
});

test('a slot that has not come cannot be claimed, and one of the future that was recorded counts as now', async () => {
  const seen = (nowMs: number) => runs.seen([{ id: 'cron_a', revision: 'r' }], nowMs);
  const claim = (slotMs: number) => runs.claim([{ id: 'exec_a', jobId: 'cron_a', org: 'org_a', slotMs, timeoutMs: 1000, revision: 'r' }]);
  await seen(0);
  expect(await claim(systemClock.now() + 3_600_000)).toBe(0);
  await redis.client.hset(`${prefix}{cron}:slots`, 'cron_a', `${systemClock.now() + 3_600_000} r`);
  const [noted] = await seen(systemClock.now());
  expect(noted?.isNew).toBe(false);
  expect(noted?.claimedMs).toBeLessThanOrEqual(systemClock.now());
  expect(await claim(systemClock.now() + 1000)).toBe(1);
});

test('a run that is held is lost by the time of Redis, whatever the clock of its worker says', async () => {
  const hourAgo = systemClock.now() - 3_600_000;
  const run = { id: 'exec_a', jobId: 'cron_a', org: 'org_a', slotMs: hourAgo, timeoutMs: 60_000 };
  await runs.hold(run);
  expect((await runs.turn('scheduler', 1000)).lost).toEqual([]);
  expect((await runs.lastRunsMs(['cron_a']))[0]).toBeGreaterThan(hourAgo + 3_000_000);
  await runs.hold({ ...run, id: 'exec_b', timeoutMs: -10_001 });
  expect((await runs.turn('scheduler', 1000)).lost.map(({ id }) => id)).toEqual(['exec_b']);
});

test('a take passes over an organization that gets no more, and gives all runs of the others', async () => {
  const claims = Array.from({ length: 25 }, (_, i) => {
    const jobId = `cron_${i}`;
    return { id: `exec_${i}`, jobId, org: i === 0 ? 'org_a' : 'org_b', slotMs: noon, timeoutMs: 1000, revision: 'r' };
  });
  await runs.seen(
    claims.map(({ jobId }) => ({ id: jobId, revision: 'r' })),
    noon - 1,
  );
  await runs.claim(claims.slice(0, 6));
  const all = await runs.take('all', 16, ['org_a']);
  expect(all.runs.map(({ id }) => id)).toEqual(['exec_1', 'exec_2', 'exec_3', 'exec_4', 'exec_5']);
  expect(all.hasMore).toBe(false);
  await runs.claim(claims.slice(6));
  await redis.client.del(`${prefix}{cron}:bell`);
  const some = await runs.take('some', 16, ['org_a']);
  expect([some.runs.length, some.hasMore]).toEqual([16, true]);
  expect(await redis.client.llen(`${prefix}{cron}:bell`)).toBe(1);
  await redis.client.del(`${prefix}{cron}:bell`);
  const rest = await runs.take('rest', 16, ['org_a']);
  expect([rest.runs.length, rest.hasMore]).toEqual([3, false]);
  // For a worker that gives the organization more.
  expect(await redis.client.llen(`${prefix}{cron}:bell`)).toBe(1);
  expect((await runs.take('blocked', 16, [])).runs.map(({ id }) => id)).toEqual(['exec_0']);
});

test('a run that no worker took is the one for the newest slot, once, whatever has become too late meanwhile', async () => {
  const run = { jobId: 'cron_a', org: 'org_a', timeoutMs: 1000, revision: 'r' };
  const claim = (id: string, slotMs: number) => runs.claim([{ ...run, id, slotMs }]);
  await runs.seen([{ id: 'cron_a', revision: 'r' }], noon - 1);
  expect(await claim('exec_a', noon)).toBe(1);
  expect(await claim('exec_b', noon + 900_000)).toBe(0);
  expect(await runs.lastSlots()).toEqual(new Map([['cron_a', noon + 900_000]]));
  for (const attempt of ['first', 'again']) {
    const { runs: taken } = await runs.take('token', 16, []);
    expect([attempt, taken]).toEqual([attempt, [{ id: 'exec_a', jobId: 'cron_a', org: 'org_a', slotMs: noon + 900_000, timeoutMs: 1000 }]]);
  }
  expect(await claim('exec_c', noon + 900_000)).toBe(0);
  expect((await runs.take('next', 16, [])).runs).toEqual([]);
  expect(await claim('exec_d', noon + 960_000)).toBe(1);
});

const ended = (id: string, startedAtMs: number): CronExecution => ({
  id,
  jobId: 'cron_a',
  org: 'org_a',
  status: 'success',
  responseStatus: 200,
  responseBody: 'b',
  errorMessage: null,
  latencyMs: 1,
  startedAtMs,
  completedAtMs: startedAtMs,
});

test('the history of a job keeps its newest hundred, and of a job that runs seldom the newest', async () => {
  const write = (id: string, startedAtMs: number) => executions.write(ended(id, startedAtMs));
  for (let i = 0; i < 130; i++) await write(`exec_${i}`, noon + i);
  const kept = await executions.newest('org_a', 'cron_a', 1000);
  expect(kept.map(({ id }) => id)).toEqual(Array.from({ length: 100 }, (_, i) => `exec_${129 - i}`));
  expect(await redis.client.hlen(`${prefix}{cron:cron_a}:bodies`)).toBe(100);
  await write('exec_late', noon + 40 * 86_400_000);
  expect((await executions.newest('org_a', 'cron_a', 1000)).map(({ id }) => id)).toEqual(['exec_late']);
});

test('the history of a job shows another organization nothing', async () => {
  const execution = ended('exec_1', noon);
  await executions.write(execution);
  expect(await executions.newest('org_b', 'cron_a', 10)).toEqual([]);
  expect(await executions.newest('org_a', 'cron_a', 10)).toEqual([execution]);
});
