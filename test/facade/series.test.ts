import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { RedisIntake } from '../../src/data/intake/intake.ts';
import type { Outcome } from '../../src/data/queue/delivery-queue.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { endCooldowns } from '../support/end-cooldowns.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { moveTallies } from '../support/move-tallies.ts';
import { newEvent } from '../support/new-event.ts';
import { attempt, failure, settleAll, takeFrom } from '../support/queue-worker.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const periodMs = 5 * minuteMs;
// Within a step of any length.
const currentMs = Math.floor(Date.now() / hourMs) * hourMs - 10 * minuteMs;
const nowMs = currentMs + 2 * minuteMs;
/** Five minutes in which something happened, before now. */
const periodsBack = [1, 2, 3, 14, 15, 26, 40, 100, 200];
const durations = [3, 20, 45, 47, 80, 110, 250, 640, 900, 2100];

let world: FacadeWorld;
const clock = new FakeClock(nowMs);
let org: string;
let queue: RedisDeliveryQueue;
let ids: { source: string; other: string; route: string; good: string; bad: string };

beforeAll(async () => {
  world = await startFacadeWorld({ clock });
  org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
  queue = new RedisDeliveryQueue({ redis: world.redis.client, prefix: 'test:', tallyMs: 0 });
  await queue.refreshShard('w1', 1000);
  const source = (await post('sources', { name: 'Orders' })).id;
  const other = (await post('sources', { name: 'Idle' })).id;
  const good = (await post('destinations', { name: 'Good', url: 'https://good.example/' })).id;
  const bad = (await post('destinations', { name: 'Bad', url: 'https://bad.example/' })).id;
  const route = (await post('routes', { name: 'All', sourceId: source, destinationIds: [good, bad] })).id;
  ids = { source, other, route, good, bad };
  const intake = new RedisIntake({ redis: world.redis.client, prefix: 'test:', clock });
  for (const [i, back] of periodsBack.entries()) {
    for (const durationMs of durations) await end(await accept(good), delivered(durationMs));
    await end(await accept(bad), { type: 'dead', attempt: failure, reason: 'max_retries_exceeded' });
    await end(await accept(bad), { type: 'retry', attempt: failure, delayMs: 3_600_000 });
    await world.acceptor.accept({ ...newEvent({ org, sourceId: source, destinations: [] }), filtered: filteredBy(route) });
    for (let repeated = 0; repeated <= i; repeated++) await intake.countDuplicate(org, source, newEvent().id);
    await moveTallies(world.redis.client, 'test:{s0}:', org, Math.floor(nowMs / periodMs) - back);
  }
  // The newest ones are read as tallies.
  await fold(3);
});
afterAll(() => world.stop());

const post = async (path: string, body: object) => (await world.request('POST', `/api/${path}`, { body })).body;
const filteredBy = (routeId: string) => newEvent({ filteredRoutes: [routeId] }).filtered;
const delivered = (durationMs: number): Outcome => ({ type: 'delivered', attempt: { ...attempt, durationMs } });
const iso = (ms: number) => new Date(ms).toISOString();
type Query = Readonly<Record<string, string | undefined>>;
const text = (query: Query) =>
  new URLSearchParams(Object.entries(query).flatMap(([name, value]): [string, string][] => (value === undefined ? [] : [[name, value]])));
const read = (query: Query, key?: string) => world.request('GET', `/api/analytics/series?${text(query)}`, key === undefined ? {} : { key });
const series = async (query: Query = {}) => {
  const { status, body } = await read(query);
  expect([status, body.message]).toEqual([200, undefined]);
  return body;
};

async function accept(destination: string, times: { notBeforeMs?: number } = {}): Promise<number> {
  const { targets, ...event } = newEvent({ org, sourceId: ids.source, destinations: [destination] });
  await world.acceptor.accept({ ...event, targets: targets.map((target) => ({ ...target, ...times, routeId: ids.route })) });
  return 1;
}
async function end(count: number, outcome: Outcome): Promise<void> {
  const jobs = await takeFrom(queue, 'w1', 64);
  expect(jobs).toHaveLength(count);
  await settleAll(queue, 'w1', jobs, outcome);
}
/** Makes statistics of the tallies that lie so many periods back or more. */
async function fold(back: number): Promise<void> {
  const due = 'test:{s0}:tallies';
  for (const name of await world.redis.client.zrange(due, '0', '-1')) {
    const period = Number(name.split(' ')[1]?.split(':')[0]);
    if (period > Math.floor(nowMs / periodMs) - back) await world.redis.client.zrem(due, name);
  }
  while (await queue.foldTallies());
}

type Sums = Record<string, number | null>;
const counts = ['events', 'duplicates', 'filtered', 'delivered', 'failed', 'movedAway', 'retried', 'attempts', 'circuitsOpened'];
const countsOf = (sums: Sums): Sums => Object.fromEntries(counts.map((name) => [name, sums[name] ?? null]));
const added = (all: readonly Sums[]): Sums =>
  Object.fromEntries(
    counts.map((name) => [name, all.some((each) => each[name] === null) ? null : all.reduce((sum, each) => sum + (each[name] ?? 0), 0)]),
  );
const zero = { events: 0, duplicates: 0, filtered: 0, delivered: 0, failed: 0, movedAway: 0, retried: 0, attempts: 0, circuitsOpened: 0 };
const deliveries = { delivered: 10, failed: 1, movedAway: 0, retried: 1, attempts: 12, circuitsOpened: 0 };

test.each([
  ['organization', () => ({}), { events: 13, duplicates: 1, filtered: 1, ...deliveries }],
  ['source', () => ({ sourceId: ids.source }), { events: 13, duplicates: 1, filtered: 1, ...deliveries }],
  ['route', () => ({ routeId: ids.route }), { events: 12, duplicates: null, filtered: 1, ...deliveries }],
  [
    'destination',
    () => ({ destinationId: ids.good }),
    { events: null, duplicates: null, filtered: null, ...deliveries, failed: 0, retried: 0, attempts: 10 },
  ],
  [
    'failing destination',
    () => ({ destinationId: ids.bad }),
    { events: null, duplicates: null, filtered: null, ...deliveries, delivered: 0, attempts: 2 },
  ],
] as const)('the series of %s has what happened in each step, and nothing in the others', async (_, scope, inPeriod) => {
  const body = await series({ ...scope(), step: '5m', from: iso(currentMs - 24 * hourMs) });
  expect(body).toMatchObject({ from: iso(currentMs - 24 * hourMs), to: iso(currentMs + periodMs), step: '5m' });
  expect(body.points).toHaveLength(289);
  const beginMs = currentMs - 24 * hourMs;
  for (const [i, point] of body.points.entries()) {
    expect(point.at).toBe(iso(beginMs + i * periodMs));
    const number = periodsBack.indexOf((currentMs - (beginMs + i * periodMs)) / periodMs);
    const duplicates = inPeriod.duplicates === null ? null : number + 1;
    const nothing = Object.fromEntries(counts.map((name) => [name, Reflect.get(inPeriod, name) === null ? null : 0]));
    expect(countsOf(point)).toEqual(number === -1 ? nothing : { ...inPeriod, duplicates });
  }
  expect(countsOf(body.total)).toEqual(added(body.points));
});

test.each(['5m', '15m', '1h', '3h'])(
  'two series of steps of %s whose ranges adjoin add up to that of the whole range, wherever they meet',
  async (step) => {
    const [from, to] = [iso(nowMs - 20 * hourMs), iso(nowMs)];
    const whole = await series({ from, to, step });
    for (const cutMs of [1, 299_999, 300_000, 7 * minuteMs, 61 * minuteMs, 90 * minuteMs, 5 * hourMs + 1, 19 * hourMs, 20 * hourMs]) {
      const cut = iso(nowMs - cutMs);
      const parts = [await series({ from, to: cut, step }), await series({ from: cut, to, step })];
      expect(parts.flatMap(({ points }) => points)).toEqual(whole.points);
      expect(added(parts.map(({ total }) => total))).toEqual(countsOf(whole.total));
      expect(parts[0].to).toBe(parts[1].from);
    }
  },
);

test('the steps of every length add up to the same', async () => {
  const midnightMs = Math.floor(nowMs / dayMs) * dayMs;
  const [from, to] = [iso(midnightMs), iso(midnightMs + dayMs)];
  const [first, ...others] = await Promise.all(
    ['5m', '30m', '1h', '6h', '1d'].map(async (step) => (await series({ from, to, step })).total),
  );
  for (const other of others) expect(other).toEqual(first);
  expect(first.events).toBeGreaterThan(0);
});

test('percentiles of a step are within 5 % of those of its attempts, and averages are exact', async () => {
  const { points, total } = await series({ destinationId: ids.good, step: '5m', from: iso(nowMs - hourMs) });
  const point = points.find(({ at }: { at: string }) => at === iso(currentMs - periodMs));
  for (const sums of [point, total]) {
    expect(sums.avgLatency).toBe(durations.reduce((sum, each) => sum + each, 0) / durations.length);
    for (const [name, exact] of [
      ['p50Latency', 80],
      ['p95Latency', 2100],
      ['p99Latency', 2100],
    ] as const)
      expect(Math.abs(sums[name] / exact - 1)).toBeLessThanOrEqual(0.05);
  }
  expect(points[0]).toMatchObject({ avgLatency: null, p50Latency: null, p95Latency: null, p99Latency: null });
});

test.each([false, true])('the series counts each opening of a circuit, and no probe that fails (folded: %s)', async (isFolded) => {
  const flaky = (await post('destinations', { name: `Flaky ${isFolded}`, url: 'https://flaky.example/' })).id;
  const circuit = { failureThreshold: 1, cooldownSeconds: 3600, probeSuccessThreshold: 1 };
  const attempted = async (outcome: Outcome) => {
    await accept(flaky);
    await queue.promote();
    await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 1, { circuit }), outcome);
  };
  const failed: Outcome = { type: 'dead', attempt: failure, reason: 'max_retries_exceeded' };
  const before = (await series()).total.circuitsOpened;
  await attempted(failed);
  await endCooldowns(world.redis.client, 'test:');
  await attempted(failed);
  await endCooldowns(world.redis.client, 'test:');
  await attempted(delivered(5));
  await attempted(failed);
  await moveTallies(world.redis.client, 'test:{s0}:', org, Math.floor(nowMs / periodMs) - 1);
  if (isFolded) await fold(1);
  const { points, total } = await series({ destinationId: flaky, step: '5m', from: iso(currentMs - 2 * periodMs) });
  expect(points.map(({ circuitsOpened }: Sums) => circuitsOpened)).toEqual([0, 2, 0]);
  expect(countsOf(total)).toMatchObject({ delivered: 1, failed: 3, attempts: 4, circuitsOpened: 2 });
  expect(total.p99Latency).toBeLessThan(10);
  expect((await series()).total.circuitsOpened).toBe(before + 2);
  expect((await series({ destinationId: ids.good })).total.circuitsOpened).toBe(0);
});

test('the series says what waits now', async () => {
  await accept(ids.bad);
  for (const scope of [{}, { sourceId: ids.source }, { routeId: ids.route }, { destinationId: ids.bad }]) {
    const { now } = await series(scope);
    expect(now).toEqual({ backlog: periodsBack.length + 1, oldestAgeMs: expect.any(Number), scheduled: 0 });
  }
  expect((await series({ destinationId: ids.good })).now).toEqual({ backlog: 0, oldestAgeMs: null, scheduled: 0 });
  expect((await series({ sourceId: ids.other })).now).toEqual({ backlog: 0, oldestAgeMs: null, scheduled: 0 });
});

test('what is scheduled for later is no part of the backlog', async () => {
  const { now: before } = await series({ destinationId: ids.bad });
  const notBeforeMs = Date.now() + hourMs;
  await accept(ids.bad, { notBeforeMs });
  expect((await series({ destinationId: ids.bad })).now).toMatchObject({ backlog: before.backlog, scheduled: 1 });
});

test('a series without parameters has the last 24 hours in steps of five minutes; without a step it has the smallest that is kept', async () => {
  expect(await series()).toMatchObject({ step: '5m', from: iso(currentMs + periodMs - dayMs), to: iso(currentMs + periodMs) });
  expect((await series({ from: iso(nowMs - 26 * hourMs) })).step).toBe('5m');
  expect((await series({ from: iso(nowMs - 26 * hourMs - periodMs) })).step).toBe('1h');
  expect((await series({ from: iso(nowMs - 9 * dayMs) })).step).toBe('1d');
  expect((await series({ from: iso(nowMs - 9 * dayMs), to: iso(nowMs - 9 * dayMs) })).points).toEqual([]);
  expect((await series({ from: iso(nowMs + dayMs) })).points).toEqual([]);
  const day = iso(nowMs - 2 * dayMs).slice(0, 10);
  expect((await series({ from: day, to: day, step: '1h' })).points).toHaveLength(24);
});

test.each([
  ['5m', 27, '1h'],
  ['15m', 27, '1h'],
  ['90m', 48, '1h'],
  ['5m', 24 * 9, '1d'],
  ['1h', 24 * 9, '1d'],
  ['12h', 24 * 9, '1d'],
])('a step of %s is not kept for %i hours, and the answer names %s', async (step, hours, possible) => {
  const { status, body } = await read({ step, from: iso(nowMs - hours * hourMs) });
  expect([status, body.code]).toEqual([400, 'INVALID_QUERY']);
  expect(body.message).toContain(`the smallest possible one is ${possible}`);
  expect((await series({ step: possible, from: iso(nowMs - hours * hourMs) })).step).toBe(possible);
});

test.each([
  ['from', 'yesterday'],
  ['from', iso(nowMs - 40 * dayMs)],
  ['to', '2026-13-01'],
  ['step', '4m'],
  ['step', '0m'],
  ['step', '7m'],
  ['step', '33d'],
  ['step', '1w'],
  ['step', '300'],
  ['step', ''],
  ['sourceId', ''],
  ['range', '24h'],
])('%s=%s is refused', async (name, value) => {
  const { status, body } = await read({ [name]: value });
  expect([status, body.code, body.message]).toEqual([
    400,
    'INVALID_QUERY',
    expect.stringMatching(`^Query: (unknown parameter ")?${name}\\b`),
  ]);
});

test('a range that ends before it begins, and two scopes at once, are refused', async () => {
  for (const [query, name] of [
    [{ from: iso(nowMs), to: iso(nowMs - 1) }, 'to'],
    [{ sourceId: ids.source, routeId: ids.route }, 'routeId'],
    [{ routeId: ids.route, destinationId: ids.good }, 'destinationId'],
  ] as const) {
    const { status, body } = await read(query);
    expect([status, body.code, body.message]).toEqual([
      400,
      'INVALID_QUERY',
      expect.stringMatching(`^Query: (unknown parameter ")?${name}\\b`),
    ]);
  }
});

test('another organization sees nothing of a series, and its ids are unknown', async () => {
  await world.addOrganization('other');
  const key = await world.addKey('other');
  const { body } = await read({}, key);
  expect(countsOf(body.total)).toEqual(zero);
  expect(body.now).toEqual({ backlog: 0, oldestAgeMs: null, scheduled: 0 });
  for (const scope of [{ sourceId: ids.source }, { routeId: ids.route }, { destinationId: ids.good }])
    expect(await read(scope, key)).toMatchObject({ status: 404, body: { code: 'RESOURCE_NOT_FOUND' } });
  expect(countsOf((await series({ sourceId: ids.other })).total)).toEqual(zero);
});

test('a series is unavailable for now without Redis', async () => {
  await world.redis.kill('SIGKILL');
  for (const scope of [{}, { sourceId: ids.source }, { routeId: ids.route }, { destinationId: ids.good }])
    expect(await read(scope)).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
});
