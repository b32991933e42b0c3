import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { type ProcessReport, ProcessReports, processReportMs } from './process-reports.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const report = (host: string, more: Partial<ProcessReport> = {}): ProcessReport => ({
  role: 'delivery',
  host,
  failingChecks: {},
  redisClockSkewSeconds: null,
  apiServerClockSkewSeconds: null,
  notReadyObjects: {},
  ...more,
});

test('the last report of each process is read until it is removed, those of another key prefix are not, and all end by themselves', async () => {
  const reports = new ProcessReports({ redis: redis.client, prefix: 'a:' });
  expect(await reports.read()).toEqual([]);
  await new ProcessReports({ redis: redis.client, prefix: 'b:' }).write(report('elsewhere'));
  await reports.write(report('two'));
  await reports.write(report('one'));
  const failing = report('two', { failingChecks: { worker: 'no heartbeat for 15 s' }, redisClockSkewSeconds: -7.5 });
  await reports.write(failing);
  expect(await reports.read()).toEqual([report('one'), failing]);
  const lifetimes = await Promise.all((await redis.client.keys('a:*')).map((key) => redis.client.pttl(key)));
  expect(lifetimes).toHaveLength(3);
  for (const lifetime of lifetimes) {
    expect(lifetime).toBeGreaterThan(processReportMs / 2);
    expect(lifetime).toBeLessThanOrEqual(processReportMs);
  }
  await reports.remove({ role: 'delivery', host: 'two' });
  expect(await reports.read()).toEqual([report('one')]);
});

test('a report that has ended, or that another release has made in another form, is left out', async () => {
  const reports = new ProcessReports({ redis: redis.client, prefix: 'c:' });
  for (const host of ['ended', 'later', 'none', 'one']) await reports.write(report(host));
  await redis.client.del('c:{workers}:report:delivery@ended');
  await redis.client.set('c:{workers}:report:delivery@later', JSON.stringify({ role: 'delivery' }));
  await redis.client.set('c:{workers}:report:delivery@none', 'no JSON');
  expect(await reports.read()).toEqual([report('one')]);
  expect((await redis.client.smembers('c:{workers}:reports')).sort()).toEqual(['delivery@later', 'delivery@none', 'delivery@one']);
});
