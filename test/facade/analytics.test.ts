import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { RedisIntake } from '../../src/data/intake/intake.ts';
import type { Outcome } from '../../src/data/queue/delivery-queue.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { newEvent } from '../support/new-event.ts';
import { attempt, failure, settleAll, takeFrom } from '../support/queue-worker.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

const minuteMs = 60_000;
let world: FacadeWorld;
let clock: FakeClock;
let org: string;
let queue: RedisDeliveryQueue;
let ids: { source: string; route: string; good: string; bad: string };

beforeAll(async () => {
  // Ahead, or what is delivered after the end of a period would lie in none that is read.
  clock = new FakeClock(Date.now() + 60_000);
  world = await startFacadeWorld({ clock });
  org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
  queue = new RedisDeliveryQueue({ redis: world.redis.client, prefix: 'test:' });
  await queue.refreshShard('w1', 1000);
  const source = (await post('sources', { name: 'Orders' })).id;
  const good = (await post('destinations', { name: 'Good', url: 'https://good.example/' })).id;
  const bad = (await post('destinations', { name: 'Bad', url: 'https://bad.example/' })).id;
  const route = (await post('routes', { name: 'All', sourceId: source, destinationIds: [good, bad] })).id;
  ids = { source, route, good, bad };
  for (let i = 0; i < 10; i++) await accept(good);
  await end(10, { type: 'delivered', attempt: { ...attempt, durationMs: 100, startedAtMs: clock.now() } });
  await accept(bad);
  await end(1, { type: 'dead', attempt: { ...failure, startedAtMs: clock.now() }, reason: 'max_retries_exceeded' });
  await accept(bad);
  await end(1, { type: 'retry', attempt: { ...failure, startedAtMs: clock.now() + 1 }, delayMs: 60_000 });
  await accept(good);
  await world.acceptor.accept({ ...newEvent({ org, sourceId: source, destinations: [] }), filtered: filteredBy(route) });
  const intake = new RedisIntake({ redis: world.redis.client, prefix: 'test:', clock });
  for (let i = 0; i < 2; i++) await intake.countDuplicate(org, source, newEvent().id);
});
afterAll(() => world.stop());

const post = async (path: string, body: object) => (await world.request('POST', `/api/${path}`, { body })).body;
const get = async (path: string) => (await world.request('GET', `/api/${path}`)).body;
const filteredBy = (routeId: string) => newEvent({ filteredRoutes: [routeId] }).filtered;

async function accept(destination: string): Promise<void> {
  const { targets, ...event } = newEvent({ org, sourceId: ids.source, destinations: [destination] });
  await world.acceptor.accept({ ...event, targets: targets.map((target) => ({ ...target, routeId: ids.route })) });
}
async function end(count: number, outcome: Outcome): Promise<void> {
  const jobs = await takeFrom(queue, 'w1', 64);
  expect(jobs).toHaveLength(count);
  await settleAll(queue, 'w1', jobs, outcome);
}

describe('the overview', () => {
  test('the overview holds the sums, the lists and what becomes of deliveries', async () => {
    expect(await get('analytics')).toEqual({
      range: '24h',
      summary: {
        totalEvents: 14,
        totalDeliveries: 11,
        successRate: 90.91,
        avgLatency: expect.closeTo(84.17, 1),
        duplicatesDropped: 2,
        eventsFiltered: 1,
      },
      sources: [{ sourceId: ids.source, name: 'Orders', eventsCount: 14, duplicatesDropped: 2, lastEventAt: expect.any(String) }],
      destinations: [
        { destinationId: ids.bad, name: 'Bad', deliveryCount: 1, successRate: 0, avgLatency: 5 },
        { destinationId: ids.good, name: 'Good', deliveryCount: 10, successRate: 100, avgLatency: 100 },
      ],
      statusBreakdown: { delivered: 10, failed: 1, pending: 1, retrying: 1, circuit_open: 0 },
    });
  });

  test('the overview of the last hour is empty after an hour and a bit, that of a day is not', async () => {
    clock.jump(66 * minuteMs);
    expect((await get('analytics?range=1h')).summary).toMatchObject({ totalEvents: 0, totalDeliveries: 0, successRate: null });
    expect((await get('analytics?range=24h')).summary).toMatchObject({ totalEvents: 14, totalDeliveries: 11 });
    clock.jump(-66 * minuteMs);
  });

  test('the overview refuses another range', async () => {
    for (const path of ['analytics', 'analytics/routes', 'analytics/destinations/health']) {
      const answer = await world.request('GET', `/api/${path}?range=2h`);
      expect(answer).toMatchObject({ status: 400, body: { code: 'INVALID_QUERY' } });
      for (const range of ['1h', '24h', '7d', '30d']) expect((await get(`${path}?range=${range}`)).range).toBe(range);
    }
  });

  test('the overview of another organization knows nothing of this one', async () => {
    await world.addOrganization('other');
    const key = await world.addKey('other');
    const { body } = await world.request('GET', '/api/analytics', { key });
    expect(body).toMatchObject({ summary: { totalEvents: 0, totalDeliveries: 0 }, sources: [], destinations: [] });
  });
});

test('the health of destinations comes with the newest failures, the least healthy first', async () => {
  const { range, destinations } = await get('analytics/destinations/health?range=1h');
  expect(range).toBe('1h');
  expect(destinations).toEqual([
    {
      destinationId: ids.bad,
      name: 'Bad',
      deliveryCount: 1,
      successRate: 0,
      avgLatency: 5,
      p50Latency: expect.closeTo(5, 0),
      p95Latency: expect.closeTo(5, 0),
      p99Latency: expect.closeTo(5, 0),
      recentFailures: [1, 0].map((later) => ({
        messageId: expect.stringMatching(/^msg_/),
        at: new Date(clock.now() + later).toISOString(),
        responseStatus: 500,
        errorMessage: 'status 500',
      })),
      healthScore: 0,
    },
    {
      destinationId: ids.good,
      name: 'Good',
      deliveryCount: 10,
      successRate: 100,
      avgLatency: 100,
      p50Latency: expect.any(Number),
      p95Latency: expect.any(Number),
      p99Latency: expect.any(Number),
      recentFailures: [],
      healthScore: 100,
    },
  ]);
  for (const quantile of ['p50Latency', 'p95Latency', 'p99Latency'])
    expect(Math.abs(destinations[1][quantile] - 100)).toBeLessThanOrEqual(5);
});

test('routes show their events, deliveries, what waits and their circuit', async () => {
  expect(await get('analytics/routes')).toMatchObject({
    range: '24h',
    routes: [
      {
        routeId: ids.route,
        name: 'All',
        eventsRouted: 13,
        delivered: 10,
        failed: 1,
        filtered: 1,
        pending: 2,
        successRate: 90.91,
        avgLatency: expect.closeTo(84.17, 1),
        circuitState: 'closed',
        lastEventAt: expect.any(String),
      },
    ],
  });
});

test('lists and records show the counters since the object was made', async () => {
  expect((await get('destinations')).data).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ id: ids.good, deliveriesCount: 10, successRate: 100, avgLatency: 100, lastDeliveryAt: expect.any(String) }),
      expect.objectContaining({ id: ids.bad, deliveriesCount: 1, successRate: 0, avgLatency: 5 }),
    ]),
  );
  expect(await get(`destinations/${ids.good}`)).toMatchObject({ deliveriesCount: 10, successRate: 100 });
  expect(await get(`routes/${ids.route}`)).toMatchObject({ eventsRouted: 13, lastEventAt: expect.any(String) });
  expect((await get('sources')).data).toMatchObject([{ id: ids.source, eventsCount: 14, lastEventAt: expect.any(String) }]);
});

test('the analytics and the lists with figures are unavailable for now without Redis', async () => {
  await world.redis.kill('SIGKILL');
  for (const path of [
    'analytics',
    'analytics/routes',
    'analytics/destinations/health',
    'destinations',
    `routes/${ids.route}/failed-event-samples`,
  ]) {
    const answer = await world.request('GET', `/api/${path}`);
    expect(answer).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
    expect(answer.headers.get('retry-after')).not.toBeNull();
  }
});
