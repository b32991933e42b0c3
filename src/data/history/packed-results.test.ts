import { expect, test } from '@jest/globals';
import { messageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { delivered, settleEverything } from '../../../test/support/queue-worker.ts';
import { base32 } from '../../core/ids.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import type { DeliveryView, NewEvent, ViewPage } from '../shard/messages.ts';
import { resultId } from '../shard/packed-results.ts';
import { MessageArchive } from './message-archive.ts';

const prefix = 'test:';
const org = 'org_a';
const everything = { finishedMs: -1000, deadLettersMs: -1000 };

const suite = messageQueueSuite(prefix);

/** Their last characters differ as those of real ids do. */
const routesOf = (count: number): string[] =>
  Array.from(
    { length: count },
    (_, i) => `rte_${'a'.repeat(20)}${base32(Buffer.from([i >> 8, i & 255, 0, (i % 32) << 3, 0])).slice(0, 8)}`,
  );

async function accept(routes: readonly string[], changes: Partial<NewEvent> & { destinations?: string[] } = {}): Promise<NewEvent> {
  const event = newEvent({ destinations: [], filteredRoutes: [...routes], ...changes });
  await suite.acceptor.accept(event);
  return event;
}

const idsOf = (event: NewEvent): string[] => event.filtered.map((_, i) => resultId(event.id, i));

async function allOf(filter: Parameters<typeof suite.reader.deliveries>[1], limit: number): Promise<DeliveryView[]> {
  const all: DeliveryView[] = [];
  let cursor: string | undefined;
  do {
    const page: ViewPage<DeliveryView> = await suite.reader.deliveries(org, filter, { limit, ...(cursor !== undefined && { cursor }) });
    expect(page.items.length).toBeLessThanOrEqual(limit);
    all.push(...page.items);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return all;
}

async function commandsOf(act: () => Promise<unknown>): Promise<number> {
  await suite.redis.client.config('RESETSTAT');
  await act();
  const stats = await suite.redis.client.info('commandstats');
  return [...stats.matchAll(/calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

test('storing an event takes no more commands for 2,000 routes that filter it than for 200', async () => {
  await accept(routesOf(2000));
  const few = await commandsOf(() => accept(routesOf(200)));
  const many = await commandsOf(() => accept(routesOf(2000)));
  expect(many).toBe(few);
  expect(many).toBeLessThan(120);
});

test('an event that one route filters takes no more commands than before', async () => {
  await accept(['rte_a']);
  expect(await commandsOf(() => accept(['rte_a']))).toBeLessThan(35);
});

test.each([1, 2, 7, 40, 1000])('each of %i routes that filter an event has a delivery of its own', async (count) => {
  const routes = routesOf(count);
  const event = await accept(routes);
  const ids = idsOf(event);
  expect(new Set(ids).size).toBe(count);
  const deliveries = await suite.reader.deliveriesOfEvent(org, event.id);
  expect(deliveries.map(({ id, routeId, status }) => [id, routeId, status])).toEqual(ids.map((id, i) => [id, routes[i], 'filtered']));
  expect(await suite.reader.event(org, event.id)).toMatchObject({ status: 'filtered', deliveryCount: count });
  for (const [i, view] of [...deliveries.entries()].filter(([i]) => i % 97 === 0)) {
    expect(await suite.reader.delivery(org, ids[i] ?? '')).toEqual(view);
    expect(view).toMatchObject({
      org,
      eventId: event.id,
      destinationId: null,
      attempts: 0,
      maxAttempts: 0,
      completedAtMs: view.createdAtMs,
    });
    expect(await suite.reader.attempts(org, view.id)).toEqual([]);
  }
  expect(await suite.reader.delivery('org_b', ids[0] ?? '')).toBeNull();
  expect(await suite.reader.delivery(org, resultId(event.id, count))).toBeNull();
});

test.each([1, 3, 50, 100])(
  'lists read by %i have the results of several events once each, with what was delivered between them',
  async (limit) => {
    const routes = routesOf(120);
    const events = [];
    for (let i = 0; i < 3; i++)
      events.push(
        await accept(i === 1 ? routes.slice(0, 5) : routes, {
          ...newEvent({ filteredRoutes: [...(i === 1 ? routes.slice(0, 5) : routes)] }),
        }),
      );
    await settleEverything(suite.queue, 'w1', delivered);
    const expected = events.flatMap((event) => [...idsOf(event), ...event.targets.map(({ messageId }) => messageId)]);
    const all = await allOf({}, limit);
    expect(all.map(({ id }) => id).toSorted()).toEqual(expected.toSorted());
    const times = all.map(({ createdAtMs }) => createdAtMs);
    expect(times).toEqual(times.toSorted((one, other) => other - one));
    expect((await allOf({ statuses: ['filtered'] }, limit)).map(({ id }) => id).toSorted()).toEqual(events.flatMap(idsOf).toSorted());
    expect(await allOf({ statuses: ['delivered'] }, limit)).toHaveLength(3);
    for (const at of [0, 4, 119]) {
      const ofRoute = events.filter(({ filtered }) => at < filtered.length).map((event) => resultId(event.id, at));
      expect((await allOf({ routeId: routes[at] ?? '' }, limit)).map(({ id }) => id)).toEqual(ofRoute.toReversed());
      expect((await allOf({ routeId: routes[at] ?? '', statuses: ['filtered'] }, limit)).map(({ id }) => id)).toEqual(ofRoute.toReversed());
      expect(await allOf({ routeId: routes[at] ?? '', statuses: ['delivered'] }, limit)).toEqual([]);
      expect(await suite.reader.hasHistory(org, routes[at] ?? '', 'deliveries')).toBe(true);
    }
    expect(await allOf({ routeId: 'rte_a' }, limit)).toHaveLength(3);
    expect(await suite.reader.hasHistory(org, 'rte_none', 'deliveries')).toBe(false);
    expect(await allOf({ destinationId: 'dst_a' }, limit)).toHaveLength(3);
  },
);

test.each([1, 30, 2000])('%i results go with the retention of their event, and leave nothing', async (count) => {
  await accept(routesOf(count));
  await accept(routesOf(count), newEvent({ filteredRoutes: routesOf(count) }));
  expect((await checkShards({ redis: suite.redis.client, prefix, shards: 1 })).findings).toEqual([]);
  await settleEverything(suite.queue, 'w1', delivered);
  while ((await suite.queue.prune(everything)).hasMore);
  const left = await suite.redis.client.keys(`${prefix}{s0}:*`);
  expect(left.filter((key) => /:(?:[mexy]:|i:|fin|refs|ue|ub|fb)/.test(key))).toEqual([]);
});

test('results go before a message of their event that has not ended, and its bytes with them', async () => {
  const event = await accept(routesOf(300), newEvent({ filteredRoutes: routesOf(300) }));
  while ((await suite.queue.prune(everything)).hasMore);
  expect((await suite.reader.deliveriesOfEvent(org, event.id)).map(({ id }) => id)).toEqual([event.targets[0]?.messageId]);
  expect((await checkShards({ redis: suite.redis.client, prefix, shards: 1 })).findings).toEqual([]);
});

test('the purge of an organization removes its results', async () => {
  await accept(routesOf(300));
  await new RedisMessagePurger({ redis: suite.redis.client, prefix }).purgeOrganization(org, AbortSignal.timeout(60_000));
  expect((await suite.redis.client.keys(`${prefix}{s0}:*`)).filter((key) => /:(?:[mexy]:|i:)/.test(key))).toEqual([]);
});

test('an archive has each result once, and the results stay until all of them are written', async () => {
  const archive = new MessageArchive({ redis: suite.redis.client, prefix, limits: { records: 100, bytes: 1_000_000, ageMs: 0 } });
  await archive.set(org, 'dst_w');
  const event = await accept(routesOf(250));
  while (await archive.gather());
  const written: string[] = [];
  for (;;) {
    expect((await suite.reader.deliveriesOfEvent(org, event.id)).length).toBe(250);
    expect((await checkShards({ redis: suite.redis.client, prefix })).findings).toEqual([]);
    const batch = await archive.batch(org, 'w1', { layout: 'jsonl', destinationId: 'dst_w' });
    if (batch === null) break;
    let count = 0;
    for await (const { view, event: stored } of archive.messages(org, batch)) {
      expect([view.status, stored?.payload.toString()]).toEqual(['filtered', '{"a":1}']);
      written.push(view.id);
      count++;
    }
    expect(count).toBeLessThanOrEqual(100);
    await archive.done(org, batch.id, count);
  }
  expect(written).toEqual(idsOf(event));
  while ((await suite.queue.prune(everything)).hasMore);
  expect(await suite.reader.event(org, event.id)).toBeNull();
  expect((await suite.redis.client.keys(`${prefix}{s0}:*`)).filter((key) => /:(?:[mexy]:|i:|fin)/.test(key))).toEqual([]);
});

test('an event that is sent again keeps its results as they were', async () => {
  const event = await accept(routesOf(20));
  expect(await suite.acceptor.accept(event)).toBe(false);
  expect(await allOf({}, 50)).toHaveLength(20);
});
