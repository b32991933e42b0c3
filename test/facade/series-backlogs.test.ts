import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { webhookOrganization } from '../../src/core/webhook.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { hashFields } from '../../src/data/shard/hash-fields.ts';
import { newEvent } from '../support/new-event.ts';
import { settleEverything } from '../support/queue-worker.ts';
import { waitForPeriodStart } from '../support/wait-for-period-start.ts';
import { type MessagesWorld, startMessagesWorld } from './webhooks/messages-world.ts';

const periodMs = 300_000;
const base = 'test:{s0}:';
let world: MessagesWorld;
let queue: RedisDeliveryQueue;
beforeAll(async () => {
  world = await startMessagesWorld();
  queue = new RedisDeliveryQueue({ redis: world.facade.redis.client, prefix: 'test:' });
});
afterAll(() => world?.stop());
beforeEach(async () => {
  await world.clear();
  await waitForPeriodStart(periodMs);
});

const post = async (path: string, body: object) => (await world.facade.request('POST', `/api/${path}`, { body })).body;
const read = async (query: string) => (await world.facade.request('GET', `/api/${query}`)).body;
/** Takes a sample, also where these five minutes have one. */
async function sample(): Promise<void> {
  await world.facade.redis.client.hdel(`${base}ctl`, hashFields.control.sampledPeriod);
  await queue.sampleBacklogs();
}
/** As if the samples of these five minutes had been taken so many periods earlier. */
async function moveBack(org: string, periods: number): Promise<void> {
  const { client } = world.facade.redis;
  const now = Math.floor(Date.now() / periodMs);
  for (const each of ['', org])
    if ((await client.exists(`${base}st:${each}:m${now}:b`)) === 1)
      await client.rename(`${base}st:${each}:m${now}:b`, `${base}st:${each}:m${now - periods}:b`);
}
type Point = { at: string; backlog: number | null; oldestAgeMs: number | null };

test('series say what has waited at the organization, a route and a destination, and adjoining ranges have each step once', async () => {
  const { org, facade } = world;
  const source = (await post('sources', { name: 'Orders' })).id;
  const [good, bad] = [
    (await post('destinations', { name: 'Good', url: 'https://good.example/' })).id,
    (await post('destinations', { name: 'Bad', url: 'https://bad.example/' })).id,
  ];
  const route = (await post('routes', { name: 'All', sourceId: source, destinationIds: [good, bad] })).id;
  const accept = async (...destinations: string[]): Promise<void> => {
    const { targets, ...event } = newEvent({ org, sourceId: source, destinations });
    await facade.acceptor.accept({ ...event, targets: targets.map((target) => ({ ...target, routeId: route })) });
  };
  await accept(good, bad);
  await accept(bad);
  await sample();
  await moveBack(org, 3);
  await accept(bad);
  await sample();
  await accept(bad);
  await accept(bad);
  await sample();
  await moveBack(org, 1);
  await settleEverything(queue, 'w1');
  await sample();
  const now = Math.floor(Date.now() / periodMs) * periodMs;
  const iso = (periods: number) => new Date(now - periods * periodMs).toISOString();
  const shown = async (scope: string, from = iso(4), to = iso(-1)) => {
    const { points, total } = await read(`analytics/series?step=5m&from=${from}&to=${to}${scope}`);
    return { backlogs: points.map(({ backlog }: Point) => backlog), total: total.backlog, points };
  };
  expect(await shown('')).toMatchObject({ backlogs: [null, 3, null, 5, 0], total: 3.3 });
  expect(await shown(`&routeId=${route}`)).toMatchObject({ backlogs: [null, 3, null, 5, 0], total: 3.3 });
  expect(await shown(`&destinationId=${bad}`)).toMatchObject({ backlogs: [null, 2, null, 4, 0], total: 2.5 });
  expect(await shown(`&sourceId=${source}`)).toMatchObject({ backlogs: [null, 3, null, 5, 0], total: 3.3 });
  const idle = (await post('sources', { name: 'Idle' })).id;
  expect(await shown(`&sourceId=${idle}`)).toMatchObject({ backlogs: [null, null, null, null, null], total: null });
  const whole = await shown('');
  const ages = whole.points.map(({ oldestAgeMs }: Point) => oldestAgeMs);
  expect(ages).toEqual([null, expect.any(Number), null, expect.any(Number), null]);
  expect(ages[3]).toBeGreaterThan(ages[1]);
  for (const cut of [3, 2, 1, 0.5, 0]) {
    const parts = [await shown('', iso(4), iso(cut)), await shown('', iso(cut), iso(-1))];
    expect(parts.flatMap(({ points }) => points)).toEqual(whole.points);
  }
  const hours = await read(`analytics/series?step=1h&from=${iso(12)}`);
  expect(hours.points.map(({ backlog }: Point) => backlog)).toContain(3.3);
});

test('series of webhooks say what has waited at the organization, an application and an endpoint', async () => {
  const [first, other] = [await world.endpoint(), await world.endpoint()];
  const second = await world.endpoint(first.applicationId);
  for (const endpoints of [[first, second], [first], [other]]) await world.send(endpoints);
  await sample();
  await moveBack(webhookOrganization(world.org), 1);
  const backlogOf = async (scope: string) => (await read(`webhooks/analytics/series?step=5m${scope}`)).data.points.at(-2).backlog;
  expect(await backlogOf('')).toBe(4);
  expect(await backlogOf(`&applicationId=${first.applicationId}`)).toBe(3);
  expect(await backlogOf(`&endpointId=${first.id}`)).toBe(2);
  expect(await backlogOf(`&endpointId=${other.id}`)).toBe(1);
});
