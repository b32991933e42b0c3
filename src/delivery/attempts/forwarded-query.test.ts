import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { destinationRecord, routeRecord, transformRecord } from '../../../test/support/records.ts';
import type { TransformRecord } from '../../core/records.ts';
import { RedisMessageReplayer } from '../../data/history/message-replayer.ts';
import { systemClock } from '../../runtime/system-clock.ts';

let replayer: RedisMessageReplayer;
const suite = deliverySuite();
const { prefix, receiver, worker } = suite;
beforeAll(() => {
  replayer = new RedisMessageReplayer({ redis: suite.redis.client, prefix, clock: systemClock });
});
beforeEach(() => suite.registry.put('route', routeRecord({})));

function destination(url: string, forwardQuery?: boolean, fields: { id?: string; slug?: string } = {}): void {
  suite.registry.put('destination', destinationRecord({ url, ...(forwardQuery !== undefined && { forwardQuery }) }, fields));
}
async function send(changes: Parameters<typeof newEvent>[0]): Promise<string> {
  const event = newEvent(changes);
  await suite.acceptor.accept(event);
  return event.targets[0]?.messageId ?? '';
}

describe('the query of an event', () => {
  test.each([
    ['', true, 'a=%2f+b&a=%C3%BC&bad=100%&&c', '/?a=%2f+b&a=%C3%BC&bad=100%&&c'],
    ['/hooks', true, 'a=1', '/hooks?a=1'],
    ['/hooks?own=%7e', true, 'own=2&a=1', '/hooks?own=%7e&own=2&a=1'],
    ['/hooks?own=1#part', true, 'a=1', '/hooks?own=1&a=1'],
    ['/hooks#part', true, 'a=1', '/hooks?a=1'],
    ['/hooks?', true, 'a=1', '/hooks?a=1'],
    ['/hooks?own=1', true, '', '/hooks?own=1'],
    ['/hooks?own=1', false, 'a=1', '/hooks?own=1'],
    ['/hooks', undefined, 'a=1', '/hooks'],
    ['/', true, '@evil.example/&//evil.example', '/?@evil.example/&//evil.example'],
  ])('%s with forwardQuery %s and the query %j reaches the receiver as %s', async (url, forwardQuery, query, target) => {
    const to = await receiver();
    destination(to.url + url, forwardQuery);
    worker();
    await send({ query, method: 'GET', contentType: '', headers: [], payload: Buffer.alloc(0) });
    expect((await to.arrived(1))[0]).toMatchObject({ path: target, method: 'POST', body: Buffer.alloc(0) });
  });

  test('the query of an event goes out with every retry, with a replay, and beside the output of a transform', async () => {
    const to = await receiver((response, number) => response.writeHead(number === 1 ? 500 : 200).end());
    destination(to.url, true);
    suite.registry.put('route', routeRecord({ transformId: 'trf_a' }));
    const code = '{"on": query.state = "on", "tags": query.tag}';
    suite.registry.put('transform', transformRecord(code));
    worker();
    const id = await send({ query: 'state=on&tag=a&tag=b' });
    await eventually(async () => expect(await suite.reader.delivery('org_a', id)).toMatchObject({ status: 'delivered', attempts: 2 }));
    await replayer.replay('org_a', id);
    const requests = await to.arrived(3);
    expect(requests.map(({ path, body }) => [path, body.toString()])).toEqual(
      Array(3).fill(['/?state=on&tag=a&tag=b', '{"on":true,"tags":["a","b"]}']),
    );
  });

  test('the query of an event goes to the destination that a message fails over to when that one forwards it', async () => {
    const [from, to] = [await receiver((response) => response.writeHead(500).end()), await receiver()];
    destination(from.url);
    destination(to.url, true, { id: 'dst_b', slug: 'b' });
    suite.registry.put('route', routeRecord({ failover: { destinations: [{ id: 'dst_b', shard: 0 }], afterAttempts: 1 } }));
    worker();
    await send({ query: 'a=1' });
    expect((await to.arrived(1))[0]?.path).toBe('/?a=1');
    expect((await from.arrived(1))[0]?.path).toBe('/');
  });
});

test.each<[TransformRecord['type'], string, string, string]>([
  ['jsonata', 'query', 'a=1&b=%20&a=2', '{"a":["1","2"],"b":" "}'],
  ['jsonata', '{"state": query.state, "body": payload}', 'state=on', '{"state":"on","body":""}'],
  ['javascript', '(event) => event.query', 'a=1&__proto__=2', '{"a":"1","__proto__":"2"}'],
  ['javascript', '(event) => ({ state: event.query.state ?? "none" })', '', '{"state":"none"}'],
  ['liquid', 'Device {{ query.device }} is {{ query.state }}', 'device=7&state=on', 'Device 7 is on'],
])('a transform in %s, %s, sees the parameters of %j', async (type, code, query, output) => {
  const to = await receiver();
  destination(to.url);
  suite.registry.put('route', routeRecord({ transformId: 'trf_a' }));
  suite.registry.put('transform', transformRecord(code, { type }));
  worker();
  await send({ query, method: 'GET', contentType: '', headers: [], payload: Buffer.alloc(0) });
  expect((await to.arrived(1))[0]?.body.toString()).toBe(output);
});
