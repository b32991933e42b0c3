import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { eventually } from '../../test/support/eventually.ts';
import { silentLogger as logger } from '../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { systemClock } from '../runtime/system-clock.ts';
import { Readiness } from './readiness.ts';
import { readinessMetric } from './readiness-metric.ts';
import { RedisLink } from './redis-link.ts';
import { watchRedis } from './watch-redis.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** Watches with a clock that is `lateMs` behind and has no patience. */
async function watching(lateMs: number): Promise<{ readiness: Readiness; registry: Registry; stop(): Promise<void> }> {
  const readiness = new Readiness(['redis']);
  const registry = new Registry();
  readinessMetric(registry, readiness);
  const stopping = new AbortController();
  const clock = {
    ...systemClock,
    now: () => systemClock.now() - lateMs,
    sleep: (_: number, signal?: AbortSignal) => systemClock.sleep(20, signal),
  };
  const link = new RedisLink({ mode: 'single', url: redis.url }, { name: 'controller', prefix: 'test:', logger, readiness });
  expect(await link.waitUntilReachable(systemClock, stopping.signal)).toBe(true);
  const watched = watchRedis(link, { clock, registry, logger, readiness, stopping: stopping.signal }, { settings: true });
  return {
    readiness,
    registry,
    stop: async () => {
      stopping.abort();
      await watched;
      link.close();
    },
  };
}

const shownValue = async (registry: Registry, name: string): Promise<number | undefined> =>
  (await registry.getSingleMetric(name)?.get())?.values[0]?.value;

test.each([0, 90_000, -90_000])('a clock that is %i ms late shows as a difference to that of Redis', async (lateMs) => {
  const { registry, stop } = await watching(lateMs);
  try {
    await eventually(async () => {
      const skew = (await shownValue(registry, 'posthorn_clock_skew_seconds')) ?? Number.NaN;
      expect(Math.abs(skew + lateMs / 1000)).toBeLessThan(30);
    }, 10_000);
  } finally {
    await stop();
  }
});

test('an eviction policy that is set while the process runs makes it not ready until it is taken back', async () => {
  const { readiness, registry, stop } = await watching(0);
  const shown = async () =>
    (await registry.getSingleMetric('posthorn_readiness')?.get())?.values.map(({ labels, value }) => [labels['check'], value]);
  try {
    await eventually(() => expect(readiness.ready).toBe(true), 10_000);
    expect(await shown()).toEqual([['redis', 1]]);
    await redis.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await eventually(() => expect(readiness.missing).toMatch(/^redis-settings: .*allkeys-lru/), 10_000);
    expect(await shown()).toEqual([
      ['redis', 1],
      ['redis-settings', 0],
    ]);
    await redis.client.config('SET', 'maxmemory-policy', 'noeviction');
    await eventually(() => expect(readiness.ready).toBe(true), 10_000);
  } finally {
    await stop();
  }
});
