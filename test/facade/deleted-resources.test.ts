import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { RedisMessagePurger } from '../../src/data/purge/message-purger.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { eventually } from '../support/eventually.ts';
import { newEvent } from '../support/new-event.ts';
import { dead, delivered, settleEverything } from '../support/queue-worker.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

/** What explain and series report of a deleted source, route and destination, and what of that goes with time. */
let world: FacadeWorld;
let org: string;
let stranger: string;
let queue: RedisDeliveryQueue;
let ids: { source: string; route: string; destination: string; replay: string };
beforeAll(async () => {
  world = await startFacadeWorld();
  org = await world.organizationId('acme');
  await world.addOrganization('stranger');
  stranger = await world.addKey('stranger');
  queue = new RedisDeliveryQueue({ redis: world.redis.client, prefix: 'test:' });
  await queue.refreshShard('w1', 1000);
  const source = (await world.create('sources', { name: 'Shop' })).id;
  const destination = (await world.create('destinations', { name: 'Bank', url: 'https://bank.example.com/' })).id;
  const route = (await world.create('routes', { name: 'Orders', sourceId: source, destinationIds: [destination] })).id;
  const replay = (await world.create('replays', { name: 'again', what: 'deliveries', suspend: true })).id;
  ids = { source, route, destination, replay };
  for (const outcome of [delivered, delivered, dead]) {
    const { targets, ...event } = newEvent({ org, sourceId: source, destinations: [destination] });
    await world.acceptor.accept({ ...event, targets: targets.map((target) => ({ ...target, routeId: route })) });
    await settleEverything(queue, 'w1', outcome);
  }
  for (const [path, id] of [
    ['routes', route],
    ['destinations', destination],
    ['sources', source],
    ['replays', replay],
  ])
    expect((await world.request('DELETE', `/api/${path}/${id}`)).status).toBeLessThan(300);
});
afterAll(() => world.stop());

const explain = (id: string, key?: string) => world.request('GET', `/api/explain/${id}`, { key });
const series = (query: string, key?: string) => world.request('GET', `/api/analytics/series?${query}`, { key });
const stepOf = (body: { story: { what: string; text: string; data: object }[] }, what: string) =>
  body.story.find((step) => step.what === what);
async function deleted(id: string) {
  return await eventually(async () => {
    const { body } = await explain(id);
    expect(body).toMatchObject({ id, state: 'deleted' });
    return body;
  });
}
const scopes = () => [`sourceId=${ids.source}`, `routeId=${ids.route}`, `destinationId=${ids.destination}`];

test('a deleted source has the name that its events have, what it received, and where its events are', async () => {
  const body = await deleted(ids.source);
  expect(body).toMatchObject({ kind: 'source', summary: 'The source "shop" was deleted.' });
  expect(stepOf(body, 'events')).toMatchObject({ data: { events: 3 } });
  expect(stepOf(body, 'history')).toMatchObject({ data: { isKept: true } });
  expect(body.advice).toEqual([{ text: 'Read its events.', command: expect.stringContaining(`/api/events?sourceId=${ids.source}"`) }]);
});

test('a deleted route has the events that it took, a deleted destination how its deliveries ended', async () => {
  const route = await deleted(ids.route);
  expect(route).toMatchObject({ kind: 'route', summary: 'The route was deleted.' });
  expect(stepOf(route, 'events')).toMatchObject({ data: { events: 3 } });
  const destination = await deleted(ids.destination);
  expect(destination).toMatchObject({ kind: 'destination', summary: 'The destination was deleted.' });
  expect(stepOf(destination, 'deliveries')).toMatchObject({ data: { deliveries: 3, successes: 2 } });
  expect(destination.advice[0].command).toContain(`/api/deliveries?destinationId=${ids.destination}"`);
});

test('a deleted replay that never began says no more than that', async () => {
  expect(await deleted(ids.replay)).toMatchObject({ kind: 'replay', summary: 'The replay was deleted.', advice: [] });
});

test('a deleted route and destination have their series, a deleted source that of its events', async () => {
  for (const id of Object.values(ids)) await deleted(id);
  const total = async (query: string) => {
    const { status, body } = await series(query);
    expect([status, body.message]).toEqual([200, undefined]);
    return body.total;
  };
  expect(await total(`routeId=${ids.route}`)).toMatchObject({ events: 3, filtered: 0, delivered: 2, failed: 1, attempts: 3 });
  expect(await total(`destinationId=${ids.destination}`)).toMatchObject({ events: null, delivered: 2, failed: 1, attempts: 3 });
  expect(await total(`sourceId=${ids.source}`)).toMatchObject({
    events: 3,
    duplicates: 0,
    filtered: null,
    delivered: null,
    attempts: null,
  });
});

test('another organization hears nothing of what was deleted', async () => {
  for (const id of Object.values(ids)) {
    await deleted(id);
    expect(await explain(id, stranger)).toMatchObject({ status: 404, body: { code: 'RESOURCE_NOT_FOUND' } });
  }
  for (const query of scopes()) expect(await series(query, stranger)).toMatchObject({ status: 404, body: { code: 'RESOURCE_NOT_FOUND' } });
});

test('what was counted goes with the clean-up, and is then unknown, not zero', async () => {
  for (const id of Object.values(ids)) await deleted(id);
  const gone = new Set(Object.values(ids));
  const purger = new RedisMessagePurger({ redis: world.redis.client, prefix: 'test:' });
  const forget = () =>
    purger.removeDeletedCounters(org, async (given) => new Set(given.filter((id) => gone.has(id))), new AbortController().signal);
  await forget();
  const destination = await deleted(ids.destination);
  expect(stepOf(destination, 'deliveries')).toMatchObject({ data: { deliveries: null, successes: null } });
  expect(stepOf(destination, 'history')).toMatchObject({ data: { isKept: true } });
  expect((await series(`destinationId=${ids.destination}`)).body.total).toMatchObject({ delivered: 2 });
  await queue.prune({ finishedMs: -1000, deadLettersMs: -1000 });
  await forget();
  const later = await deleted(ids.destination);
  expect(stepOf(later, 'history')).toMatchObject({ data: { isKept: false } });
  expect(later.advice).toEqual([]);
  expect((await series(`destinationId=${ids.destination}`)).body).toMatchObject({ now: null, total: { delivered: null, attempts: null } });
  expect(await deleted(ids.source)).toMatchObject({ summary: 'The source was deleted.' });
  expect((await series(`sourceId=${ids.source}`)).body.total).toMatchObject({ events: 3 });
});
