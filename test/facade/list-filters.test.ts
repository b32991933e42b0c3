import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { newEvent } from '../support/new-event.ts';
import { dead, delivered, settleEverything } from '../support/queue-worker.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

/** The filters of lists of events and deliveries, as they are sent. */
let world: FacadeWorld;
/** By the status that they have in the end. */
const events = new Map<string, ReturnType<typeof newEvent>>();
beforeAll(async () => {
  world = await startFacadeWorld();
  const org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
  const queue = new RedisDeliveryQueue({ redis: world.redis.client, prefix: 'test:' });
  await queue.tend('w1', 1000);
  const accept = async (status: string, changes: Parameters<typeof newEvent>[0]): Promise<void> => {
    const event = newEvent({ org, ...changes });
    await world.acceptor.accept(event);
    events.set(status, event);
  };
  await accept('delivered', {});
  await settleEverything(queue, 'w1', delivered);
  await accept('failed', { destinations: ['dst_b'] });
  await accept('failed too', { destinations: ['dst_c'], payload: Buffer.from('{"a":3}') });
  await settleEverything(queue, 'w1', dead);
  const headers: [string, string][] = [
    ['x-gitlab-event', 'Push Hook'],
    ['x-gitlab-token', 'the secret'],
  ];
  await accept('no_routes', { destinations: [], headers });
  await accept('pending', { destinations: ['dst_d'], payload: Buffer.from('<a/>'), contentType: 'text/xml' });
});
afterAll(() => world.stop());

const get = async (path: string) => world.request('GET', `/api/${path}`);
const idsOf = async (path: string): Promise<string[]> => (await get(path)).body.data.map(({ id }: { id: string }) => id);
const eventId = (status: string): string => events.get(status)?.id ?? '';
const messageIds = (status: string): string[] => (events.get(status)?.targets ?? []).map(({ messageId }) => messageId);

test('events and deliveries are filtered by several statuses and ids, with commas or in parameters of their own', async () => {
  const [lost = ''] = messageIds('failed');
  const [sent = ''] = messageIds('delivered');
  const ids = [eventId('failed'), eventId('failed too'), eventId('delivered')];
  expect((await idsOf('events?status=failed,delivered')).sort()).toEqual(ids.sort());
  expect(await idsOf('events?status=failed&status=delivered')).toEqual(await idsOf('events?status=failed,delivered'));
  expect(await idsOf(`events?id=${eventId('failed')},evt_none&status=failed`)).toEqual([eventId('failed')]);
  expect(await idsOf(`events?id=${eventId('failed')}&status=delivered`)).toEqual([]);
  expect(await idsOf(`deliveries?id=${lost}&id=${sent}&status=dlq`)).toEqual([lost]);
  expect(await idsOf(`deliveries?id=${lost},msg_none`)).toEqual([lost]);
});

test('deliveries are filtered by error, response, attempts and when they failed', async () => {
  const [lost = ''] = messageIds('failed');
  const all = await idsOf('deliveries?status=dlq');
  expect(all).toContain(lost);
  expect((await idsOf('deliveries?errorType=http_error')).sort()).toEqual(all.toSorted());
  expect(await idsOf('deliveries?errorType=timeout,dns')).toEqual([]);
  expect((await idsOf('deliveries?responseStatus=4xx,500')).sort()).toEqual(all.toSorted());
  expect(await idsOf('deliveries?responseStatus=503')).toEqual([]);
  expect(await idsOf('deliveries?responseStatus=2XX')).toEqual(await idsOf('deliveries?status=delivered'));
  expect(await idsOf('deliveries?attemptsMin=2')).toEqual([]);
  expect((await idsOf('deliveries?attemptsMin=1&attemptsMax=1&errorType=http_error')).sort()).toEqual(all.toSorted());
  expect((await idsOf('deliveries?failedFrom=1970-01-01&failedTo=2200-01-01')).sort()).toEqual(all.toSorted());
  expect(await idsOf('deliveries?failedFrom=1970-01-02')).toEqual([]);
  expect(await idsOf(`deliveries?eventId=${eventId('failed')}&errorType=http_error&failedTo=1970-01-01`)).toEqual([lost]);
  expect(await idsOf(`deliveries?eventId=${eventId('failed')}&errorType=timeout`)).toEqual([]);
});

test('events and deliveries are searched by payload and headers', async () => {
  const found = (list: string, where: string, more = '') => idsOf(`${list}?where=${encodeURIComponent(where)}${more}`);
  expect(await found('events', 'headers["x-gitlab-event"] == "Push Hook"')).toEqual([eventId('no_routes')]);
  expect(await found('events', '"x-gitlab-token" in headers')).toEqual([]);
  expect(await found('events', 'event.data == "<a/>"')).toEqual([eventId('pending')]);
  expect(await found('events', 'event.data.a == 1.0', '&status=failed')).toEqual([eventId('failed')]);
  expect(await found('events', 'event.data.a == 3.0')).toEqual([eventId('failed too')]);
  expect(await found('deliveries', 'event.type == "shop" && event.data.a == 1.0', '&status=delivered')).toEqual(
    await idsOf('deliveries?status=delivered'),
  );
  expect(await found('deliveries', 'event.data.a == 2.0')).toEqual([]);
  const { body } = await get(`deliveries?where=${encodeURIComponent('event.data.a == 1.0')}&limit=1`);
  expect(body.pagination).toEqual({ hasMore: true, nextCursor: expect.any(String), scanned: expect.any(Number) });
  expect(await get(`deliveries?where=true&limit=1&cursor=${body.pagination.nextCursor}`)).toMatchObject({ status: 400 });
});

test.each([
  ['event.data.a ==', /^Query: where line 1, column 14: /],
  ['header.x == "1"', /line 1, column 1: there is no header: .*event.data, labels, metadata and headers/],
  ['"text"', /the result is neither true nor false/],
  ['x'.repeat(1001), /^Query: where /],
])('a list says where the expression %j is wrong', async (where, message) => {
  for (const list of ['events', 'deliveries'])
    expect(await get(`${list}?where=${encodeURIComponent(where)}`)).toMatchObject({
      status: 400,
      body: { code: 'INVALID_QUERY', message: expect.stringMatching(message) },
    });
});

test.each(['offset=1', 'eventId=evt_x'])('a list says that where does not go with %s', async (other) => {
  expect(await get(`deliveries?where=true&${other}`)).toMatchObject({ status: 400, body: { code: 'INVALID_QUERY' } });
});

test.each([
  ['events', 'status', 'failed,unknown'],
  ['events', 'id', ''],
  ['deliveries', 'status', 'dlq&status=unknown'],
  ['deliveries', 'id', 'x'.repeat(129)],
  ['deliveries', 'errorType', 'broken'],
  ['deliveries', 'responseStatus', '6xx'],
  ['deliveries', 'responseStatus', '500,5x'],
  ['deliveries', 'attemptsMin', '-1'],
  ['deliveries', 'attemptsMax', '1&attemptsMin=2'],
  ['deliveries', 'failedFrom', 'yesterday'],
  ['deliveries', 'failedTo', '2026-01-01&failedFrom=2026-01-02'],
  ['deliveries', 'attemptsMin', '1&attemptsMin=2'],
])('the list of %s says that %s=%s is wrong', async (list, name, value) => {
  const message = expect.stringContaining(`Query: ${name} `);
  expect(await get(`${list}?${name}=${value}`)).toMatchObject({ status: 400, body: { code: 'INVALID_QUERY', message } });
});
