import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { Outcome } from '../../../src/data/queue/delivery-queue.ts';
import type { WebhookEndpoint } from '../../../src/data/webhooks/webhooks.ts';
import { moveTallies } from '../../support/move-tallies.ts';
import { dead, delivered, settleAll, takeFrom } from '../../support/queue-worker.ts';
import { waitForPeriodStart } from '../../support/wait-for-period-start.ts';
import { dropped, later, type MessagesWorld, startMessagesWorld } from './messages-world.ts';

const periodMs = 300_000;
let world: MessagesWorld;
beforeAll(async () => {
  world = await startMessagesWorld();
});
afterAll(() => world.stop());
beforeEach(async () => {
  await world.clear();
  await waitForPeriodStart(periodMs);
});

const read = (query = '', key?: string) =>
  world.facade.request('GET', `/api/webhooks/analytics/series${query}`, key === undefined ? {} : { key });
const series = async (query = '') => (await read(query)).body.data;
async function sent(endpoint: WebhookEndpoint, ...outcomes: Outcome[]): Promise<void> {
  for (const outcome of outcomes) {
    await world.send([endpoint]);
    await world.end(outcome);
  }
}
const fold = async () => {
  const due = `test:{s0}:tallies`;
  for (const name of await world.facade.redis.client.zrange(due, '0', '-1')) await world.facade.redis.client.zadd(due, 'XX', 1, name);
  while (await world.queue.foldTallies());
};
const nowPeriod = () => Math.floor(Date.now() / periodMs);
const move = (back: number) => moveTallies(world.facade.redis.client, 'test:{s0}:', `+${world.org}`, nowPeriod() - back);

// Before tallies are folded, after it, and with some of both.
test.each(['tallies', 'sums', 'both'])(
  'series of webhooks say per step what is of the organization, an application and an endpoint (%s)',
  async (where) => {
    const first = await world.endpoint();
    const [second, other] = [await world.endpoint(first.applicationId), await world.endpoint()];
    await sent(first, delivered, dead, dropped('filtered'));
    await sent(other, delivered);
    await move(3);
    if (where === 'both') await fold();
    await sent(second, delivered, later);
    await move(1);
    if (where === 'sums') await fold();
    const shownBy = async (query: string) => {
      const { points, total, now } = await series(`?step=5m${query}`);
      const shown = ({ events, filtered, delivered: ok, failed, retried, attempts }: Record<string, number>) => [
        events,
        filtered,
        ok,
        failed,
        retried,
        attempts,
      ];
      return { earlier: shown(points.at(-4)), latest: shown(points.at(-2)), total: shown(total), now };
    };
    const nothing = [0, 0, 0, 0, 0, 0];
    const now = { backlog: 1, oldestAgeMs: null, scheduled: 0 };
    expect(await shownBy('')).toEqual({ earlier: [4, 1, 2, 1, 0, 3], latest: [2, 0, 1, 0, 1, 2], total: [6, 1, 3, 1, 1, 5], now });
    expect(await shownBy(`&applicationId=${first.applicationId}`)).toEqual({
      earlier: [3, 1, 1, 1, 0, 2],
      latest: [2, 0, 1, 0, 1, 2],
      total: [5, 1, 2, 1, 1, 4],
      now,
    });
    expect(await shownBy(`&endpointId=${second.id}`)).toEqual({
      earlier: nothing,
      latest: [2, 0, 1, 0, 1, 2],
      total: [2, 0, 1, 0, 1, 2],
      now,
    });
    const idle = { backlog: 0, oldestAgeMs: null, scheduled: 0 };
    expect(await shownBy(`&endpointId=${first.id}`)).toMatchObject({ earlier: [3, 1, 1, 1, 0, 2], latest: nothing, now: idle });
  },
);

test.each([false, true])(
  'the series of an endpoint, its application and the organization count the openings of its circuit (folded: %s)',
  async (isFolded) => {
    const [endpoint, other] = [await world.endpoint(), await world.endpoint()];
    await world.send([endpoint]);
    const circuit = { failureThreshold: 1, cooldownSeconds: 3600, probeSuccessThreshold: 1 };
    await settleAll(world.queue, 'w1', await takeFrom(world.queue, 'w1', 1, { circuit }), dead);
    await sent(other, dead);
    await move(1);
    if (isFolded) await fold();
    const openedIn = async (query: string) => {
      const { points, total } = await series(`?step=5m${query}`);
      return [points.at(-2).circuitsOpened, total.circuitsOpened, total.attempts];
    };
    expect(await openedIn('')).toEqual([1, 1, 2]);
    expect(await openedIn(`&applicationId=${endpoint.applicationId}`)).toEqual([1, 1, 1]);
    expect(await openedIn(`&endpointId=${endpoint.id}`)).toEqual([1, 1, 1]);
    expect(await openedIn(`&endpointId=${other.id}`)).toEqual([0, 0, 1]);
  },
);

test('the series of an endpoint says how long the oldest message waits, also while it is being delivered', async () => {
  const [endpoint, idle] = [await world.endpoint(), await world.endpoint()];
  await world.send([endpoint]);
  await takeFrom(world.queue, 'w1', 1);
  await world.send([endpoint]);
  const { now } = await series(`?endpointId=${endpoint.id}`);
  expect(now).toEqual({ backlog: 2, oldestAgeMs: expect.any(Number), scheduled: 0 });
  expect(now.oldestAgeMs).toBeLessThan(periodMs);
  const empty = await series(`?endpointId=${idle.id}`);
  expect(empty.total).toMatchObject({ events: 0, duplicates: null, filtered: 0, delivered: 0, attempts: 0, p50Latency: null });
  expect(empty.points).toHaveLength(288);
});

test('hours of webhooks are kept for eight days, and the lists of failing endpoints only as long as they are read', async () => {
  await sent(await world.endpoint(), dead);
  await fold();
  const { client } = world.facade.redis;
  const hoursLeft = async (pattern: string) => {
    const [key = ''] = (await client.keys(`test:{s0}:st:+${world.org}:${pattern}`)).sort((one, other) => one.length - other.length);
    return Math.ceil((await client.ttl(key)) / 3600);
  };
  expect(await Promise.all(['m*', 'h*', 'd*', 'm*:f', 'h*:f', 'd*:f'].map(hoursLeft))).toEqual([26, 192, 768, 2, 26, 768]);
});

test.each(['step=1s', 'from=x', 'to=x', 'endpointId=', 'applicationId=', 'timeRange=1h'])(
  'a series of webhooks with %s is 400',
  async (query) => {
    const { status, body } = await read(`?${query}`);
    expect([status, Object.keys(body.details)]).toEqual([400, [query.split('=')[0]]]);
  },
);

test('a deleted endpoint and a deleted application have their series, to their organization alone', async () => {
  const endpoint = await world.endpoint();
  await sent(endpoint, delivered);
  await world.facade.addOrganization('curious');
  const stranger = await world.facade.addKey('curious');
  await world.store.deleteEndpoint(world.org, endpoint.id);
  const ofEndpoint = `?endpointId=${endpoint.id}`;
  expect((await series(ofEndpoint)).total).toMatchObject({ events: 1, delivered: 1, attempts: 1 });
  expect((await read(`${ofEndpoint}&applicationId=${endpoint.applicationId}`)).status).toBe(404);
  await world.store.deleteApplication(world.org, endpoint.applicationId);
  const ofApplication = `?applicationId=${endpoint.applicationId}`;
  expect((await series(ofApplication)).total).toMatchObject({ events: 1, delivered: 1, attempts: 1 });
  for (const query of [ofEndpoint, ofApplication]) expect((await read(query, stranger)).status).toBe(404);
  const explain = async (id: string, key?: string) => world.facade.request('GET', `/api/explain/${id}`, { key });
  expect((await explain(endpoint.id)).body).toMatchObject({
    kind: 'endpoint',
    state: 'deleted',
    summary: `The endpoint "${endpoint.url}" was deleted.`,
    story: expect.arrayContaining([
      expect.objectContaining({ what: 'messages', data: expect.objectContaining({ deliveries: 1, successes: 1 }) }),
    ]),
  });
  expect((await explain(endpoint.applicationId)).body).toMatchObject({
    kind: 'application',
    state: 'deleted',
    summary: expect.stringMatching(/^The application "Customer \d+" was deleted\.$/),
  });
  for (const id of [endpoint.id, endpoint.applicationId]) expect((await explain(id, stranger)).status).toBe(404);
});

test('the series of an application or endpoint that is not there, or of another organization, is 404', async () => {
  const [endpoint, other] = [await world.endpoint(), await world.endpoint()];
  await world.facade.addOrganization('other');
  const stranger = await world.facade.addKey('other');
  const answers = [
    await read('?applicationId=app_none'),
    await read('?endpointId=ep_none'),
    await read(`?endpointId=${endpoint.id}&applicationId=${other.applicationId}`),
    await read(`?applicationId=${endpoint.applicationId}`, stranger),
    await read(`?endpointId=${endpoint.id}`, stranger),
  ];
  expect(answers.map(({ status, body }) => [status, body.error])).toEqual(answers.map(() => [404, 'Not found']));
  await sent(endpoint, delivered);
  expect((await read('', stranger)).body.data.total).toMatchObject({ events: 0, delivered: 0 });
});
