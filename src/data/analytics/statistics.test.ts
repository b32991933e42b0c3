import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { dead, delivered, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newTimedId } from '../../core/ids.ts';
import { LatencyHistogram, latencyBucket } from '../../core/latency-histogram.ts';
import { RedisMessageReader } from '../history/message-reader.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import type { Outcome, Settlement, TargetSetting } from '../queue/delivery-queue.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import { RedisStatisticsReader } from './redis-statistics-reader.ts';
import { keptLevels, seriesPeriods } from './series-periods.ts';
import type { StatisticsRange } from './statistics-periods.ts';

const prefix = 'test:';
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
let redis: RedisServer;
let clock: FakeClock;
let acceptor: RedisMessageAcceptor;
let statistics: RedisStatisticsReader;
let reader: RedisMessageReader;
const queues: RedisDeliveryQueue[] = [];

beforeAll(async () => {
  redis = await startRedis();
  const shards = () => 2;
  acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  reader = new RedisMessageReader({ redis: redis.client, prefix, shards });
  for (const shard of [0, 1]) queues.push(new RedisDeliveryQueue({ redis: redis.client, prefix, shard, tallyMs: 0 }));
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  // Ahead, or what is delivered after the end of a period would lie in none that is read.
  clock = new FakeClock(Date.now() + minuteMs);
  statistics = new RedisStatisticsReader({ redis: redis.client, prefix, clock, shards: () => 2 });
});

async function deliver(count: number, outcome: Outcome, options: { shard?: number; setting?: Partial<TargetSetting> } = {}): Promise<void> {
  const { shard = 0, setting } = options;
  const queue = queues[shard];
  if (queue === undefined) throw new Error(`there is no shard ${shard}`);
  for (let i = 0; i < count; i++) {
    const { id, ...event } = newEvent({ destinations: [`dst_${shard}`] });
    const inShard = (given: string) => given.slice(0, 4) + shard.toString().padStart(2, '0') + given.slice(6);
    const targets = event.targets.map((target) => ({ ...target, messageId: inShard(target.messageId), shard }));
    await acceptor.accept({ ...event, id: inShard(id), targets });
  }
  for (let open = count; open > 0; ) {
    const jobs = await takeFrom(queue, 'w1', Math.min(open, 64), setting);
    await settleAll(queue, 'w1', jobs, outcome);
    open -= jobs.length;
  }
}
/** Makes statistics of what is tallied. */
async function fold(): Promise<void> {
  for (const queue of queues) while (await queue.foldTallies());
}
const took = (durationMs: number): Outcome => ({
  type: 'delivered',
  attempt: { ...failure, responseStatus: 200, errorType: null, durationMs },
});
const deliveredIn = async (range: StatisticsRange): Promise<number> => (await statistics.ofOrganization('org_a', range)).total.delivered;

describe('the statistics of an organization', () => {
  test.each([0, 1, 3])(
    'the statistics of an organization count every end exactly once, over all shards, however often they are folded (%i)',
    async (folds) => {
      await deliver(70, delivered);
      await deliver(5, dead);
      if (folds > 0) await fold();
      await deliver(3, delivered, { shard: 1 });
      for (let i = 1; i < folds; i++) await fold();
      const { total, targets, events } = await statistics.ofOrganization('org_a', '1h');
      expect(total).toMatchObject({ delivered: 73, failed: 5 });
      expect(total.latencies.total).toBe(78);
      expect(targets.map(({ destinationId, statistics: { delivered: ok, failed } }) => [destinationId, ok, failed]).sort()).toEqual([
        ['dst_0', 70, 5],
        ['dst_1', 3, 0],
      ]);
      expect(Object.fromEntries(events)).toEqual({ src_a: 78, rte_a: 78 });
      expect(await reader.destinationCounters('org_a', 'dst_0')).toMatchObject({ deliveries: 75, successes: 70, averageLatencyMs: 5 });
    },
  );

  test('the statistics of an organization count what a filter holds back for its route', async () => {
    await acceptor.accept(newEvent({ destinations: [], filteredRoutes: ['rte_f'] }));
    const { filtered, events } = await statistics.ofOrganization('org_a', '1h');
    expect(Object.fromEntries(filtered)).toEqual({ rte_f: 1 });
    expect(Object.fromEntries(events)).toEqual({ src_a: 1 });
  });

  test('the statistics of an organization say nothing of a settlement that was sent twice', async () => {
    await acceptor.accept(newEvent());
    const jobs = await takeFrom(new RedisDeliveryQueue({ redis: redis.client, prefix }), 'w1', 1);
    for (const expected of [true, false]) {
      expect(await settleAll(new RedisDeliveryQueue({ redis: redis.client, prefix }), 'w1', jobs, delivered)).toEqual([expected]);
    }
    expect(await deliveredIn('1h')).toBe(1);
  });

  test('put durations into the buckets of the histogram', async () => {
    const durations = [0, 1, 2, 3, 10, 47, 48, 99, 250, 999, 1000, 1001, 5000, 29_999, 30_000, 60_000, 61_000, 10_000_000];
    const expected = new LatencyHistogram();
    for (const ms of durations) {
      await deliver(1, took(ms));
      if (ms % 2 === 0) await fold();
      expected.add(latencyBucket(ms));
    }
    const { latencies, latencySumMs } = (await statistics.ofOrganization('org_a', '24h')).total;
    for (let share = 0; share <= 1; share += 1 / 64) expect(latencies.quantile(share)).toBe(expected.quantile(share));
    expect(latencySumMs).toBe(durations.reduce((sum, ms) => sum + ms, 0));
  });

  test('the statistics of an organization count a message that moved to its failover as moved away there and as delivered here', async () => {
    const setting = { failover: { destinations: [{ id: 'dst_spare', shard: 0 }], afterAttempts: null } };
    await acceptor.accept(newEvent({ destinations: ['dst_0'] }));
    const queue = queues[0];
    if (queue === undefined) return;
    await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 1, setting), dead);
    await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 1), delivered);
    const { total, targets } = await statistics.ofOrganization('org_a', '1h');
    expect(total).toMatchObject({ delivered: 1, failed: 0, movedAway: 1 });
    expect(targets.find(({ destinationId }) => destinationId === 'dst_0')?.statistics).toMatchObject({ delivered: 0, movedAway: 1 });
    expect(targets.find(({ destinationId }) => destinationId === 'dst_spare')?.statistics).toMatchObject({ delivered: 1 });
  });

  test('the statistics of an organization are gone after a purge', async () => {
    await deliver(2, delivered);
    await fold();
    await deliver(2, delivered);
    await new RedisMessagePurger({ redis: redis.client, prefix, shards: 2 }).purgeOrganization('org_a', new AbortController().signal);
    expect(await redis.client.keys(`${prefix}*:st:*`)).toEqual([]);
    expect(await redis.client.keys(`${prefix}*:tallies`)).toEqual([]);
  });
});

test.each([false, true])(
  'failed attempts count as retried where another one was planned, and only there (folded: %s)',
  async (isFolded) => {
    const [queue] = queues;
    if (queue === undefined) throw new Error('there is no queue');
    await queue.refreshShard('w1', 1000);
    await deliver(2, { type: 'retry', attempt: failure, delayMs: 0 });
    await queue.promote();
    await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 2), { type: 'retry', attempt: failure, delayMs: 60_000 });
    await deliver(3, dead);
    await deliver(4, delivered);
    await acceptor.accept(newEvent({ destinations: ['dst_0'] }));
    await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 1), { type: 'back' });
    if (isFolded) await fold();
    const { total } = await statistics.ofOrganization('org_a', '1h');
    expect([total.retried, total.latencies.total, total.failed]).toEqual([4, 11, 3]);
    expect(total.latencies.quantile(1)).toBeLessThan(10);
  },
);

test('the tallies of many organizations are folded a few at a time', async () => {
  const organizations = Array.from({ length: 25 }, (_, i) => `org_${i}`);
  for (const org of organizations) await acceptor.accept(newEvent({ org }));
  expect(await redis.client.zcard(`${prefix}{s0}:tallies`)).toBe(25);
  let calls = 1;
  while (await queues[0]?.foldTallies()) calls++;
  expect(calls).toBe(1);
  for (let i = 0; i < 40; i++) await acceptor.accept(newEvent({ org: `org_${i}` }));
  expect(await queues[0]?.foldTallies()).toBe(true);
  expect(await queues[0]?.foldTallies()).toBe(false);
  for (const org of organizations) expect((await statistics.ofOrganization(org, '24h')).events.get('src_a')).toBe(2);
});

describe('a range', () => {
  const ranges: [StatisticsRange, number, number][] = [
    ['1h', hourMs - minuteMs - 1, 65 * minuteMs],
    ['24h', dayMs - minuteMs - 1, 25 * hourMs],
    ['7d', 7 * dayMs - minuteMs - 1, 7 * dayMs + hourMs],
    ['30d', 30 * dayMs - minuteMs - 1, 31 * dayMs],
  ];
  const cases = ranges.flatMap((each) => [false, true].map((isFolded) => [...each, isFolded] as const));
  test.each(cases)('a range of %s holds what happened in it and not what was before', async (range, insideMs, outsideMs, isFolded) => {
    await deliver(3, delivered);
    if (isFolded) await fold();
    expect(await deliveredIn(range)).toBe(3);
    clock.jump(insideMs);
    expect(await deliveredIn(range)).toBe(3);
    clock.jump(outsideMs - insideMs);
    expect(await deliveredIn(range)).toBe(0);
  });

  test('a range of 7d counts nothing twice where hours and days meet', async () => {
    await deliver(1, delivered);
    await fold();
    for (let hours = 0; hours < 7 * 24; hours++) {
      expect(await deliveredIn('7d')).toBe(1);
      clock.jump(hourMs);
    }
  });

  test('a range is dropped by Redis after its time', async () => {
    await deliver(1, delivered);
    await fold();
    const ttls = await Promise.all(
      ['m', 'h', 'd'].map(async (level) => {
        const [key = ''] = await redis.client.keys(`${prefix}{s0}:st:org_a:${level}*`);
        return Math.ceil((await redis.client.ttl(key)) / 3600);
      }),
    );
    expect(ttls).toEqual(keptLevels.map(({ keptMs }) => keptMs / hourMs));
  });
});

test('counters of what is gone are removed, others stay', async () => {
  await deliver(2, delivered);
  await deliver(2, delivered, { shard: 1 });
  const purger = new RedisMessagePurger({ redis: redis.client, prefix, shards: 2 });
  const gone = async () => new Set(['dst_1', 'src_a']);
  expect(await purger.removeDeletedCounters('org_a', gone, new AbortController().signal)).toBe(3);
  expect(await reader.destinationCounters('org_a', 'dst_0')).toMatchObject({ deliveries: 2 });
  expect(await reader.destinationCounters('org_a', 'dst_1')).toMatchObject({ deliveries: 0, lastDeliveryAtMs: null });
  expect(await reader.eventCounters('org_a', 'src_a')).toEqual({ events: 0, lastEventAtMs: null });
  expect(await reader.eventCounters('org_a', 'rte_a')).toMatchObject({ events: 4 });
});

describe('what waits', () => {
  test('what waits is reported per target: fresh messages, retries, the circuit and the newest failed attempts', async () => {
    await deliver(6, { type: 'retry', attempt: { ...failure, startedAtMs: Date.now() }, delayMs: 60_000 });
    await acceptor.accept(newEvent({ destinations: ['dst_0'] }));
    const [target] = (await statistics.ofOrganization('org_a', '1h', { failures: true })).targets;
    expect(target).toMatchObject({ fresh: 1, retries: 6, circuit: 'closed' });
    expect(target?.failures).toHaveLength(5);
    expect(target?.failures[0]).toMatchObject({ responseStatus: 500, errorMessage: 'status 500' });
    expect((await statistics.ofOrganization('org_a', '1h')).targets[0]?.failures).toEqual([]);
  });

  test('what waits is counted per target, whatever of it becomes due with others', async () => {
    const [queue] = queues;
    if (queue === undefined) throw new Error('there is no queue');
    await queue.refreshShard('w1', 1000);
    for (let i = 0; i < 3; i++) await acceptor.accept(newEvent({ destinations: ['dst_0', 'dst_1'] }));
    const jobs = await takeFrom(queue, 'w1', 6);
    const dueAtOnce = { dst_0: 1, dst_1: 2 };
    const settlements = Object.entries(dueAtOnce).flatMap(([destinationId, due]) =>
      jobs
        .filter(({ target }) => target.destinationId === destinationId)
        .map((job, i): Settlement => {
          const outcome: Outcome = { type: 'retry', attempt: failure, delayMs: i < due ? 0 : 3_600_000 };
          return { job, outcome, maxAttempts: null };
        }),
    );
    await queue.settle('w1', settlements);
    const counts = async () => (await redis.client.hvals(`${prefix}{s0}:retries`)).map(Number).sort();
    expect(await counts()).toEqual([3, 3]);
    await eventually(async () => {
      await queue.promote();
      expect(await redis.client.zcard(`${prefix}{s0}:due`)).toBe(3);
    });
    expect(await counts()).toEqual([1, 2]);
  });

  test('what waits is an open circuit after its failures', async () => {
    const circuit = { failureThreshold: 1, cooldownSeconds: 60, probeSuccessThreshold: 1 };
    await deliver(1, { type: 'retry', attempt: failure, delayMs: 60_000 }, { setting: { circuit } });
    expect((await statistics.ofOrganization('org_a', '1h')).targets).toMatchObject([{ retries: 1, circuit: 'open' }]);
  });
});

test('a series of a source has the deliveries of its routes, unless their targets are too many for the steps', async () => {
  const routeIds = Array.from({ length: 100 }, (_, i) => `rte_${i}`);
  const nowMs = Date.now();
  const targets = routeIds.map((routeId) => ({
    messageId: newTimedId('msg_', 0, nowMs),
    ...{ routeId, destinationId: 'dst_0', shard: 0, maxAttempts: 3 },
  }));
  await acceptor.accept(newEvent({ targets }));
  const [queue] = queues;
  if (queue === undefined) throw new Error('there is no queue');
  await queue.refreshShard('w1', 10_000);
  for (let open = targets.length; open > 0; ) {
    const jobs = await takeFrom(queue, 'w1', Math.min(open, 64));
    await settleAll(queue, 'w1', jobs, delivered);
    open -= jobs.length;
  }
  const series = async (routes: string[], stepMs: number) => {
    const periods = seriesPeriods({ fromMs: clock.now() - dayMs, toMs: clock.now(), stepMs }, clock.now());
    const { hasDeliveries, waiting, total } = await statistics.series('org_a', { type: 'source', id: 'src_a', routeIds: routes }, periods);
    return { hasDeliveries, waiting, events: total.events, delivered: total.statistics.delivered };
  };
  const waiting = { messages: 0, oldestAtMs: null, scheduled: 0 };
  expect(await series(routeIds.slice(0, 2), 5 * minuteMs)).toEqual({ hasDeliveries: true, waiting, events: 1, delivered: 2 });
  expect(await series(routeIds, hourMs)).toEqual({ hasDeliveries: true, waiting, events: 1, delivered: 100 });
  expect(await series(routeIds, 5 * minuteMs)).toEqual({ hasDeliveries: false, waiting: null, events: 1, delivered: 0 });
});
