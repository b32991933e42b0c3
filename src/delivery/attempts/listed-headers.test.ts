import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { largePayload } from '../../../test/support/large-payloads.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { publishRecords } from '../../../test/support/published-records.ts';
import type { Receiver } from '../../../test/support/receiver.ts';
import { destinationRecord, routeRecord, transformRecord } from '../../../test/support/records.ts';
import { RedisMessageReplayer } from '../../data/history/message-replayer.ts';
import { systemClock } from '../../runtime/system-clock.ts';

let replayer: RedisMessageReplayer;
const suite = deliverySuite();
const { prefix, receiver, worker } = suite;
beforeAll(() => {
  replayer = new RedisMessageReplayer({ redis: suite.redis.client, prefix, clock: systemClock });
});
beforeEach(() => suite.registry.put('route', routeRecord({})));

const headers: [string, string][] = [
  ['content-type', 'application/json'],
  ['x-shop-topic', 'orders/paid'],
  ['x-shop-tag', 'a'],
  ['x-shop-tag', 'b'],
  ['x-shop-name', 'Caf\xe9 \t"x"'],
  ['x-shop-internal', 'of the sender alone'],
];

function destination(url: string, forwardHeaders?: string[], fields: Parameters<typeof destinationRecord>[1] = {}): void {
  suite.registry.put('destination', destinationRecord({ url, ...(forwardHeaders !== undefined && { forwardHeaders }) }, fields));
}
async function send(changes: Parameters<typeof newEvent>[0] = {}): Promise<string> {
  const event = newEvent({ headers, ...changes });
  await suite.acceptor.accept(event);
  return event.targets[0]?.messageId ?? '';
}
/** The headers of the sender that each request had. */
async function forwarded(to: Receiver, count = 1): Promise<Record<string, unknown>[]> {
  const requests = await to.arrived(count);
  return requests.map((request) => Object.fromEntries(Object.entries(request.headers).filter(([name]) => /^x-shop/.test(name))));
}
const all = {
  'x-shop-topic': 'orders/paid',
  'x-shop-tag': 'a, b',
  'x-shop-name': 'Caf\xe9 \t"x"',
  'x-shop-internal': 'of the sender alone',
};

test.each<[string, string[] | undefined, object]>([
  ['without a list, as in records of an earlier release', undefined, all],
  ['with an empty list', [], {}],
  ['with a list', ['x-shop-topic', 'x-shop-absent'], { 'x-shop-topic': 'orders/paid' }],
  ['with a header that came twice', ['x-shop-tag'], { 'x-shop-tag': 'a, b' }],
  ['with a header beyond ASCII', ['x-shop-name'], { 'x-shop-name': 'Caf\xe9 \t"x"' }],
])('a destination %s, %j, gets of the headers of an event %j', async (_, names, expected) => {
  const to = await receiver();
  destination(to.url, names);
  worker();
  await send();
  expect(await forwarded(to)).toEqual([expected]);
  expect(to.requests[0]?.headers['content-type']).toBe('application/json');
});

test('an event without the headers of the list is delivered without them', async () => {
  const to = await receiver();
  destination(to.url, ['x-shop-topic']);
  worker();
  const id = await send({ headers: [], contentType: '' });
  await suite.becomes(id, { status: 'delivered', attempts: 1 });
  expect(await forwarded(to)).toEqual([{}]);
});

test('the same headers go out with every retry, with a replay, and beside the output of a transform; the attempt shows them', async () => {
  const to = await receiver((response, number) => response.writeHead(number === 1 ? 500 : 200).end());
  destination(to.url, ['x-shop-topic']);
  suite.registry.put('route', routeRecord({ transformId: 'trf_a' }));
  const code = '{"topic": headers.`x-shop-topic`, "rest": headers.`x-shop-internal`}';
  suite.registry.put('transform', transformRecord(code));
  worker();
  const id = await send();
  await suite.becomes(id, { status: 'delivered', attempts: 2 });
  await replayer.replay('org_a', id);
  expect(await forwarded(to, 3)).toEqual(Array(3).fill({ 'x-shop-topic': 'orders/paid' }));
  // A transform sees all that are kept.
  expect(to.requests[0]?.body.toString()).toBe('{"topic":"orders/paid","rest":"of the sender alone"}');
  const shown = (await suite.reader.attempts('org_a', id)).map(({ detail }) => detail?.requestHeaders);
  expect(shown[0]?.filter(([name]) => name.startsWith('x-shop'))).toEqual([['x-shop-topic', 'orders/paid']]);
});

test('each destination that a message comes to has its own list', async () => {
  const [from, to] = [await receiver((response) => response.writeHead(500).end()), await receiver()];
  destination(from.url, ['x-shop-topic']);
  destination(to.url, ['x-shop-internal'], { id: 'dst_b', slug: 'b' });
  suite.registry.put('route', routeRecord({ failover: { destinations: [{ id: 'dst_b', shard: 0 }], afterAttempts: 1 } }));
  worker();
  await send();
  expect(await forwarded(to)).toEqual([{ 'x-shop-internal': 'of the sender alone' }]);
  expect(await forwarded(from)).toEqual([{ 'x-shop-topic': 'orders/paid' }]);
});

test('a payload above 1 MiB goes out with the headers of the list', async () => {
  const to = await receiver();
  destination(to.url, ['x-shop-topic']);
  worker();
  await send({ payload: largePayload() });
  expect(await forwarded(to)).toEqual([{ 'x-shop-topic': 'orders/paid' }]);
});

test('a credential of the sender, or what a proxy says, is not sent, whatever the list and the stored event have', async () => {
  const to = await receiver();
  const names = ['authorization', 'x-gitlab-token', 'x-forwarded-for', 'cookie'];
  destination(to.url, [...names, 'x-shop-topic']);
  worker();
  await send({ headers: [...names.map((name): [string, string] => [name, 'of-the-sender']), ...headers] });
  expect(await forwarded(to)).toEqual([{ 'x-shop-topic': 'orders/paid' }]);
  expect(JSON.stringify(to.requests[0]?.headers)).not.toContain('of-the-sender');
});

test('a list that changes holds for the next attempt', async () => {
  const to = await receiver((response, number) => {
    if (number === 1) destination(to.url, ['x-shop-internal'], { generation: 2 });
    response.writeHead(number === 1 ? 500 : 200).end();
  });
  destination(to.url, ['x-shop-topic']);
  worker();
  await send();
  expect(await forwarded(to, 2)).toEqual([{ 'x-shop-topic': 'orders/paid' }, { 'x-shop-internal': 'of the sender alone' }]);
});

test('a worker that takes over from one that was killed in an attempt sends the same headers', async () => {
  const to = await receiver((response, number) => {
    if (number > 1) response.end();
  });
  await publishRecords(suite.redis.client, prefix, {
    route: routeRecord(),
    destination: destinationRecord({ url: to.url, forwardHeaders: ['x-shop-topic', 'x-shop-tag'] }),
  });
  const first = await suite.program();
  const id = await send();
  await to.arrived(1);
  first.signal('SIGKILL');
  await first.ended;
  await suite.program();
  expect(await forwarded(to, 2)).toEqual(Array(2).fill({ 'x-shop-topic': 'orders/paid', 'x-shop-tag': 'a, b' }));
  await eventually(async () => expect(await suite.reader.delivery('org_a', id)).toMatchObject({ status: 'delivered' }), 60_000);
  expect(new Set(to.requests.map(({ headers: { 'webhook-id': sent } }) => sent))).toEqual(new Set([id]));
}, 120_000);
