import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
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
  await queue.refreshShard('w1', 1000);
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
  await accept('no_routes', { destinations: [], headers, signatureValid: true });
  await accept('no_routes, too', { destinations: [], signatureValid: false });
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

test('events are filtered by what became of their deliveries', async () => {
  const lost = [eventId('failed'), eventId('failed too')].toSorted();
  const found = async (query: string) => (await idsOf(`events?${query}`)).toSorted();
  expect(await found('errorType=http_error')).toEqual(lost);
  expect(await found('responseStatus=5xx')).toEqual(lost);
  expect(await found('responseStatus=2xx')).toEqual([eventId('delivered')]);
  expect(await found('attemptsMin=1&failedFrom=1970-01-01')).toEqual(lost);
  expect(await found('failedFrom=1970-01-02')).toEqual([]);
  expect(await found('attemptsMax=0')).toEqual([eventId('pending')]);
  expect(await found('destinationId=dst_b&errorType=http_error')).toEqual([eventId('failed')]);
  expect(await found('destinationId=dst_b&responseStatus=2xx')).toEqual([]);
  expect(await found('routeId=rte_a')).toEqual([...lost, eventId('delivered'), eventId('pending')].toSorted());
  expect(await found(`routeId=rte_a&status=failed&id=${eventId('failed too')},${eventId('delivered')}`)).toEqual([eventId('failed too')]);
});

test('lists are filtered by several sources, routes and destinations, with commas or in parameters of their own', async () => {
  const org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
  const other = newEvent({ org, sourceId: 'src_b', destinations: ['dst_d'] });
  await world.acceptor.accept(other);
  const all = await idsOf('events?limit=100');
  expect(await idsOf('events?sourceId=src_b')).toEqual([other.id]);
  expect(await idsOf('events?sourceId=src_b,src_a')).toEqual(all);
  expect(await idsOf('events?sourceId=src_a&sourceId=src_b')).toEqual(all);
  expect(await idsOf('events?sourceId=src_b&destinationId=dst_d,dst_b')).toEqual([other.id]);
  const both = [...messageIds('failed'), ...messageIds('failed too')].toSorted();
  expect((await idsOf('deliveries?destinationId=dst_b,dst_c')).toSorted()).toEqual(both);
  expect((await idsOf('deliveries?destinationId=dst_c&destinationId=dst_b&routeId=rte_a')).toSorted()).toEqual(both);
});

test('the pages of a list that several indexes have stay the same while events arrive', async () => {
  const org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
  const accept = async (sourceId: string): Promise<string> => {
    const event = newEvent({ org, sourceId });
    await world.acceptor.accept(event);
    return event.id;
  };
  const sent: string[] = [];
  for (const sourceId of ['src_c', 'src_d', 'src_d', 'src_c', 'src_d', 'src_c']) sent.push(await accept(sourceId));
  const seen: string[] = [];
  for (let cursor = ''; ; ) {
    const { body } = await get(`events?sourceId=src_c,src_d&routeId=rte_a&limit=2${cursor}`);
    seen.push(...body.data.map(({ id }: { id: string }) => id));
    if (!body.pagination.hasMore) break;
    cursor = `&cursor=${body.pagination.nextCursor}`;
    await accept(seen.length % 4 === 0 ? 'src_c' : 'src_d');
  }
  expect(seen).toEqual(sent.toReversed());
});

test.each([
  ['true', ['no_routes']],
  ['1', ['no_routes']],
  ['false', ['no_routes, too']],
  ['0&status=no_routes', ['no_routes, too']],
  ['0&status=failed', []],
])('events are filtered by signatureValid=%s', async (sent, expected) => {
  expect(await idsOf(`events?signatureValid=${sent}`)).toEqual(expected.map(eventId));
});

test.each(['yes', '', 'true&signatureValid=false'])('signatureValid=%s is refused', async (sent) => {
  expect(await get(`events?signatureValid=${sent}`)).toMatchObject({ status: 400, body: { code: 'INVALID_QUERY' } });
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

const form = 'application/x-www-form-urlencoded';
const json = (text: string): Buffer => Buffer.from(`{"city":"${text}"}`);
const multipart = ['--b', 'content-disposition: form-data; name="city"', '', 'Wien', '--b--', ''].join('\r\n');

test.each<[string, string, string, Buffer]>([
  ['a form', form, '', Buffer.from('city=Wien&b=2')],
  ['a form in another charset', `${form}; charset=iso-8859-1`, '', Buffer.from('city=Wien&b=%E4')],
  ['a multipart form', 'multipart/form-data; boundary=b', '', Buffer.from(multipart)],
  ['a payload with the coding gzip', 'application/json', 'gzip', gzipSync(json('Wien'))],
  ['a payload with the coding br', 'application/json', 'br', brotliCompressSync(json('Wien'))],
  ['a payload with the coding deflate', 'application/json', 'deflate', deflateSync(json('Wien'))],
  ['a compressed form', form, 'gzip', gzipSync('city=Wien')],
  ['a payload in another charset', 'application/json; charset=utf-16le', '', Buffer.from(json('Wien').toString(), 'utf16le')],
])('the fields of %s are searched', async (_, contentType, coding, payload) => {
  const org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
  const headers: [string, string][] = coding === '' ? [] : [['content-encoding', coding]];
  const event = newEvent({ org, sourceId: 'src_fields', payload, contentType, headers });
  await world.acceptor.accept(event);
  const search = (where: string) => idsOf(`events?id=${event.id}&where=${encodeURIComponent(where)}`);
  expect(await search('event.data.city == "Wien"')).toEqual([event.id]);
  expect(await search('event.data.city == "Graz"')).toEqual([]);
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
  ['events', 'sourceId', ''],
  ['events', 'sourceId', Array.from({ length: 11 }, (_, i) => `src_${i}`).join(',')],
  ['events', 'routeId', 'x'.repeat(129)],
  ['events', 'destinationId', 'dst_a,'],
  ['events', 'errorType', 'broken'],
  ['events', 'responseStatus', '500,5x'],
  ['events', 'attemptsMin', 'few'],
  ['events', 'attemptsMax', '1&attemptsMin=2'],
  ['events', 'failedTo', '2026-01-01&failedFrom=2026-01-02'],
  ['deliveries', 'routeId', ''],
  ['deliveries', 'destinationId', Array.from({ length: 11 }, (_, i) => `dst_${i}`).join(',')],
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

test.each([
  ['webhook-events', 'status', 'success,unknown'],
  ['webhook-events', 'eventType', ''],
  ['webhook-events', 'id', 'x'.repeat(129)],
  ['webhook-events', 'endpointId', 'x,'],
  ['webhook-events', 'errorType', 'broken'],
  ['webhook-events', 'responseStatus', '6xx'],
  ['webhook-events', 'attemptsMin', '-1'],
  ['webhook-events', 'attemptsMax', '1&attemptsMin=2'],
  ['webhook-events', 'failedTo', '2026-01-01&failedFrom=2026-01-02'],
  ['webhook-events', 'applicationId', Array.from({ length: 11 }, (_, i) => `app_${i}`).join(',')],
  ['webhook-events', 'where', 'event.data.a =='],
  ['webhook-events', 'from', 'yesterday'],
  ['webhook-events', 'to', '2026-01-01&from=2026-01-02'],
  ['webhook-events', 'limit', '101'],
  ['webhook-events', 'cursor', 'forged'],
  ['outbound-messages', 'endpointId', 'x,'],
  ['outbound-messages/dlq/messages', 'eventType', 'x'.repeat(129)],
])('the list of %s for endpoints says that %s=%s is wrong', async (list, name, value) => {
  const message = expect.stringContaining(`Query: ${name} `);
  expect(await get(`${list}?${name}=${value}`)).toMatchObject({ status: 400, body: { message } });
});
