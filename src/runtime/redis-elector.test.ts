import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { silentLogger } from '../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { systemClock } from './clock.ts';
import { LeaderElector } from './elector.ts';
import { RedisLock } from './redis-elector.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const times = { leaseDurationMs: 1000, renewDeadlineMs: 600, retryPeriodMs: 100 };
const lock = (key: string, identity: string) => new RedisLock(redis.client, { key, identity, times });

test('the lock has one holder, and is free again once released', async () => {
  const [a, b] = [lock('one', 'a'), lock('one', 'b')];
  expect(await a.hold()).toBe(true);
  expect(await b.hold()).toBe(false);
  await b.release();
  expect(await b.hold()).toBe(false);
  await a.release();
  expect(await b.hold()).toBe(true);
});

test('a holder that is silent for the lease duration loses the lock to another', async () => {
  expect(await lock('silent', 'a').hold()).toBe(true);
  expect(await redis.client.pttl('silent')).toBeGreaterThan(500);
  await sleep(times.leaseDurationMs + 50);
  expect(await lock('silent', 'b').hold()).toBe(true);
});

test('a leader keeps the lock by renewing, and hands it over when it releases', async () => {
  const stop = new AbortController();
  const elector = (identity: string) => new LeaderElector(lock('kept', identity), { clock: systemClock, logger: silentLogger, times });
  const first = await elector('a').acquire(stop.signal);
  let secondLeads = false;
  const second = elector('b')
    .acquire(stop.signal)
    .then((term) => {
      secondLeads = true;
      return term;
    });
  await sleep(times.leaseDurationMs * 2);
  expect({ lost: first?.lost.aborted, secondLeads }).toEqual({ lost: false, secondLeads: false });
  await first?.release();
  await (await second)?.release();
  expect(secondLeads).toBe(true);
});

test('a leader whose lock was taken by another learns it by renewing', async () => {
  const stop = new AbortController();
  const term = await new LeaderElector(lock('taken', 'a'), { clock: systemClock, logger: silentLogger, times }).acquire(stop.signal);
  await redis.client.set('taken', 'b');
  await expect(term?.renew()).rejects.toMatchObject({ code: 'CONFLICT' });
  expect(term?.lost.aborted).toBe(true);
});
