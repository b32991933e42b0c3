import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { LeaderElector } from './elector.ts';
import { RedisLock } from './redis-elector.ts';
import { systemClock } from './system-clock.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** No process loses the lock while the machine is stopped; waiters poll often. */
const times = { leaseDurationMs: 60_000, renewDeadlineMs: 50_000, retryPeriodMs: 100 };
const lock = (key: string, identity: string, leaseDurationMs = times.leaseDurationMs) =>
  new RedisLock(redis.client, { key, identity, times: { ...times, leaseDurationMs } });

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
  expect(await lock('lasting', 'a').hold()).toBe(true);
  const leftMs = await redis.client.pttl('lasting');
  expect(leftMs).toBeLessThanOrEqual(times.leaseDurationMs);
  expect(leftMs).toBeGreaterThan(times.leaseDurationMs / 2);
  expect(await lock('silent', 'a', 100).hold()).toBe(true);
  await eventually(async () => expect(await lock('silent', 'b').hold()).toBe(true));
  expect(await redis.client.get('silent')).toBe('b');
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
  for (let renewal = 0; renewal < 3; renewal++) {
    const soonMs = times.leaseDurationMs / 2;
    await redis.client.pexpire('kept', soonMs);
    await eventually(async () => expect(await redis.client.pttl('kept')).toBeGreaterThan(soonMs));
  }
  expect({ lost: first?.lost.aborted, secondLeads }).toEqual({ lost: false, secondLeads: false });
  await first?.release();
  await (await second)?.release();
  expect(secondLeads).toBe(true);
});

test('a leader whose lock was taken by another detects it by renewing', async () => {
  const stop = new AbortController();
  const term = await new LeaderElector(lock('taken', 'a'), { clock: systemClock, logger: silentLogger, times }).acquire(stop.signal);
  await redis.client.set('taken', 'b');
  await expect(term?.renew()).rejects.toMatchObject({ code: 'CONFLICT' });
  expect(term?.lost.aborted).toBe(true);
});
