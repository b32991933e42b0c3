import { hostname } from 'node:os';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Gauge, Registry } from 'prom-client';
import { eventually } from '../../test/support/eventually.ts';
import { silentLogger as logger } from '../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { ProcessReports } from '../data/membership/process-reports.ts';
import { systemClock } from '../runtime/system-clock.ts';
import { readConfig } from './config.ts';
import { Readiness } from './readiness.ts';
import { RedisLink } from './redis-link.ts';
import { reportProcess } from './report-process.ts';
import { clockSkewMetric } from './watch-redis.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

test('a process reports checks that have failed for two looks, a clock that differs by more than 5 s and objects that are not Ready, until nothing is wrong', async () => {
  const readiness = new Readiness(['redis', 'crds']);
  const registry = new Registry();
  const skew = clockSkewMetric(registry);
  const objects = new Gauge({ name: 'posthorn_objects', help: 'As of the leader.', labelNames: ['kind', 'state'], registers: [registry] });
  const stopping = new AbortController();
  const link = new RedisLink({ mode: 'single', url: redis.url }, { name: 'controller', prefix: 'test:', logger, readiness });
  let look = Promise.withResolvers<void>();
  const clock = {
    ...systemClock,
    sleep: () => Promise.race([look.promise, new Promise<void>((end) => stopping.signal.addEventListener('abort', () => end()))]),
  };
  const nextLook = async (): Promise<void> => {
    const { resolve } = look;
    look = Promise.withResolvers();
    resolve();
    await systemClock.sleep(200);
  };
  const config = readConfig('check', { POSTHORN_REDIS_URL: redis.url, POSTHORN_REDIS_KEY_PREFIX: 'test:' });
  expect(await link.waitUntilReachable(systemClock, stopping.signal)).toBe(true);
  const reporting = reportProcess(link, { config, clock, logger, registry, readiness, stopping: stopping.signal }, 'controller');
  const reports = new ProcessReports({ redis: redis.client, prefix: 'test:' });
  const reported = async (wanted: object[]): Promise<void> => eventually(async () => expect(await reports.read()).toEqual(wanted));
  const nothing = {
    role: 'controller',
    host: hostname(),
    failingChecks: {},
    redisClockSkewSeconds: 0,
    apiServerClockSkewSeconds: null,
    notReadyObjects: {},
  };
  try {
    readiness.set('crds', { ok: false, detail: 'routes.posthorn.dev lacks spec.description' });
    skew.set(4.9);
    await nextLook();
    expect(await reports.read()).toEqual([]);
    await nextLook();
    const failing = { ...nothing, redisClockSkewSeconds: 4.9, failingChecks: { crds: 'routes.posthorn.dev lacks spec.description' } };
    await reported([failing]);
    readiness.set('crds', { ok: true });
    skew.set(-90);
    objects.set({ kind: 'Route', state: 'not_ready' }, 2);
    objects.set({ kind: 'Source', state: 'not_ready' }, 0);
    objects.set({ kind: 'Source', state: 'ready' }, 3);
    await nextLook();
    await reported([{ ...nothing, redisClockSkewSeconds: -90, notReadyObjects: { Route: 2 } }]);
    skew.set(0);
    objects.reset();
    await nextLook();
    await reported([]);
    expect(await redis.client.keys('*')).toEqual([]);
  } finally {
    stopping.abort();
    await reporting;
    link.close();
  }
});
