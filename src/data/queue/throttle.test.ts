import { beforeEach, describe, expect, test } from '@jest/globals';
import { messageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { delivered, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import type { ThrottleRecord } from '../../core/records.ts';
import { limiterSetting } from './throttle.ts';

type Unit = NonNullable<ThrottleRecord['rateUnit']>;

const rate = (rateLimit: number, rateUnit: Unit): ThrottleRecord => ({
  mode: 'rate',
  rateLimit,
  rateUnit,
  maxConcurrency: null,
  queueLimit: null,
});

test.each<[number, Unit, number, number]>([
  [1, 'second', 1_000_000, 1],
  [3, 'second', 333_334, 3],
  [100, 'second', 10_000, 100],
  [1, 'minute', 60_000_000, 1],
  [59, 'minute', 1_016_950, 1],
  [119, 'minute', 504_202, 1],
  [120, 'minute', 500_000, 2],
  [6000, 'minute', 10_000, 100],
  [1, 'hour', 3_600_000_000, 1],
  [3600, 'hour', 1_000_000, 1],
  [7199, 'hour', 500_070, 1],
  [7200, 'hour', 500_000, 2],
  [360_000, 'hour', 10_000, 100],
])(
  "%d per %s lets one pass every so many µs, never less, and one second's worth at once, at least one",
  (most, unit, emissionUs, burst) => {
    expect(limiterSetting(rate(most, unit))).toEqual({ emissionUs, burst, concurrency: null, queueLimit: null });
  },
);

describe('a worker is given', () => {
  const prefix = 'test:';
  const shard = `${prefix}{s0}:`;
  const suite = messageQueueSuite(prefix);
  beforeEach(async () => {
    for (let i = 0; i < 50; i++) await suite.acceptor.accept(newEvent());
  });

  /** How many it gets at once, and delivers. */
  const take = async (throttle: ThrottleRecord): Promise<number> => {
    await suite.queue.promote();
    const jobs = await takeFrom(suite.queue, 'w1', 64, { throttle });
    await settleAll(suite.queue, 'w1', jobs, delivered);
    return jobs.length;
  };
  /** Moves what a limiter remembers into the past, and with it until when its target waits: the clock of Redis cannot be moved. */
  const letPass = async (ms: number): Promise<void> => {
    await suite.redis.client.decrby(`${shard}rate:dst_a`, ms * 1000);
    for (const member of await suite.redis.client.zrange(`${shard}waiting`, '0', '-1'))
      await suite.redis.client.zincrby(`${shard}waiting`, -ms, member);
  };

  test.each<[number, Unit, number]>([
    [1, 'second', 1],
    [6, 'second', 6],
    [1, 'minute', 1],
    [119, 'minute', 1],
    [120, 'minute', 2],
    [360, 'minute', 6],
    [1, 'hour', 1],
    [7199, 'hour', 1],
    [7200, 'hour', 2],
    [21_600, 'hour', 6],
  ])("of %d per %s, one second's worth at once, and no more after a pause of two hours", async (most, unit, burst) => {
    expect(await take(rate(most, unit))).toBe(burst);
    await letPass(7_200_000);
    expect(await take(rate(most, unit))).toBe(burst);
  });

  test.each<[number, Unit, number]>([
    [1, 'minute', 60_000],
    [60, 'hour', 60_000],
    [15, 'hour', 240_000],
    [1, 'hour', 3_600_000],
  ])('of %d per %s one every %d ms, and none before', async (most, unit, intervalMs) => {
    // The rest of an interval is longer than the test takes.
    const given: number[] = [];
    for (let i = 0; i < 20; i++) {
      given.push(await take(rate(most, unit)));
      await letPass(intervalMs / 2);
    }
    expect(given).toEqual(Array.from({ length: 20 }, (_, i) => (i + 1) % 2));
  });

  test.each<[number, Unit]>([
    [1, 'second'],
    [20, 'second'],
    [6000, 'minute'],
    [72_000, 'hour'],
  ])('of a strict %d per %s one at a time, also after a pause', async (most, unit) => {
    const strict: ThrottleRecord = { ...rate(most, unit), strict: true };
    expect(await take(strict)).toBe(1);
    await letPass(7_200_000);
    expect(await take(strict)).toBe(1);
  });

  test('of a strict 40 per second no more than that in any second, by the times that the limiter has recorded', async () => {
    const strict: ThrottleRecord = { ...rate(40, 'second'), strict: true };
    const emissionUs = limiterSetting(strict).emissionUs ?? 0;
    const takenAtUs: number[] = [];
    while (takenAtUs.length < 50) {
      const taken = await take(strict);
      expect(taken).toBeLessThanOrEqual(1);
      // It stores when the next may go.
      if (taken === 1) takenAtUs.push(Number(await suite.redis.client.get(`${shard}rate:dst_a`)) - emissionUs);
    }
    const inSecondFrom = takenAtUs.map((from) => takenAtUs.filter((at) => at >= from && at < from + 1_000_000).length);
    expect(Math.max(...inSecondFrom)).toBeLessThanOrEqual(40);
  });
});

test('a strict limit has no burst, and the same emission interval', () => {
  for (const [most, unit] of [
    [100, 'second'],
    [6000, 'minute'],
    [360_000, 'hour'],
  ] as const)
    expect(limiterSetting({ ...rate(most, unit), strict: true })).toMatchObject({ emissionUs: 10_000, burst: 1 });
});
