import { createSecretKey } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import type { HttpAuthRecord } from '../../../core/records.ts';
import { isSettableHeader } from '../../../resources/http-header.ts';
import { destinationHeaders, isDeniedHeader, requestHeaders } from './request-headers.ts';
import { endpointHeaders, webhookHeaders } from './webhook-headers.ts';

const identity = { messageId: 'msg_a', eventId: 'evt_a', number: 1, timestampSeconds: 1, userAgent: 'Posthorn/1' };
const attempt = { ...identity, failover: { originalDestinationId: 'dst_b', reason: 'circuit_open' } };
const none: HttpAuthRecord = { type: 'none' };
const key = createSecretKey(Buffer.alloc(32, 1));
const payload = Buffer.from('{}');

/** Values sent under each name, in order. */
function byName(headers: readonly string[]): Map<string, string[]> {
  const values = new Map<string, string[]>();
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]?.toLowerCase() ?? '';
    values.set(name, [...(values.get(name) ?? []), headers[i + 1] ?? '']);
  }
  return values;
}

function sent(headers: [string, string][], own = destinationHeaders([], none, [])): Map<string, string[]> {
  return byName(requestHeaders(own, { headers, contentType: 'application/json', payload }, attempt));
}

/** The value of a reserved name: ours, or nothing. */
const ours = sent([]);

// Spelled out here, so that a name that is lost from the code's list is missed.
describe.each([
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'proxy-whatever',
  'x-posthorn-attempt',
  'x-posthorn-event-id',
  'x-posthorn-failover',
  'x-posthorn-original-destination',
  'x-posthorn-failure-reason',
  'x-posthorn-whatever',
])('%s is never taken over', (name) => {
  const spelled = name.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());

  test('as a header of a stored event', () => {
    expect(sent([[name, 'forged']]).get(name)).toEqual(ours.get(name));
  });

  test.each([name, spelled, name.toUpperCase()])('as a header of a destination, configured as %s', (configured) => {
    const own = destinationHeaders([{ name: configured, value: 'forged' }], none, []);
    expect(sent([], own).get(name)).toEqual(ours.get(name));
    expect(sent([[name, 'forged']], own).get(name)).toEqual(ours.get(name));
  });

  test.each<HttpAuthRecord>([
    { type: 'api_key', headerName: spelled, key: 'forged' },
    { type: 'custom_header', headerName: spelled, headerValue: 'forged' },
  ])('as the credential of a destination, of $type', (auth) => {
    expect(sent([], destinationHeaders([], auth, [])).get(name)).toEqual(ours.get(name));
  });

  test('as a header of a webhook endpoint', () => {
    const event = { headers: [], contentType: 'application/json', payload, sourceSlug: 'order.paid' };
    const headers = (own: [string, string][]) => byName(webhookHeaders(own, [key], event, identity)).get(name);
    expect(headers(endpointHeaders([{ name: spelled, value: 'forged' }]))).toEqual(headers([]));
  });
});

test.each(['host', 'proxy-authorization', 'sec-fetch-site', 'te', 'x-posthorn-attempt'])(
  '%s, which is not sent, is none that configuration may set',
  (name) => {
    expect([isDeniedHeader(name), isSettableHeader(name), isSettableHeader(name.toUpperCase())]).toEqual([true, false, false]);
  },
);

test("a user agent is the destination's or ours, never the sender's", () => {
  const headers: [string, string][] = [['user-agent', 'sender']];
  expect(sent(headers).get('user-agent')).toEqual(['Posthorn/1']);
  expect(sent(headers, destinationHeaders([{ name: 'User-Agent', value: 'Shop/1' }], none, [])).get('user-agent')).toEqual(['Shop/1']);
});

test.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])(
  "%s is ours where the destination signs, else the sender's, never configured",
  (name) => {
    const forged = destinationHeaders([{ name, value: 'forged' }], none, [key]);
    expect(sent([[name, 'sender']], forged).get(name)).toEqual(sent([], destinationHeaders([], none, [key])).get(name));
    expect(sent([[name, 'sender']], destinationHeaders([{ name, value: 'forged' }], none, [])).get(name)).toEqual(['sender']);
  },
);

test('what is not denied is sent: of the event once for each time it came, and instead of it what the destination sets', () => {
  const headers: [string, string][] = [
    ['x-a', '1'],
    ['x-a', '2'],
    ['x-b', 'sender'],
    ['hostname', 'h'],
    ['proxy', 'p'],
  ];
  const all = sent(headers, destinationHeaders([{ name: 'X-B', value: 'own' }], { type: 'bearer', token: 't' }, []));
  expect(['x-a', 'x-b', 'hostname', 'proxy', 'authorization'].map((name) => all.get(name))).toEqual([
    ['1', '2'],
    ['own'],
    ['h'],
    ['p'],
    ['Bearer t'],
  ]);
});

describe('a destination with a list of headers that it forwards', () => {
  const of = (names: string[], own: { name: string; value: string }[] = [], auth: HttpAuthRecord = none, keys: (typeof key)[] = []) =>
    destinationHeaders(own, auth, keys, names);
  const headers: [string, string][] = [
    ['x-shop-topic', 'orders/paid'],
    ['x-shop-topic', 'again'],
    ['x_shop_topic', 'another header'],
    ['x-other', '1'],
    ['webhook-id', 'of the sender'],
    ['content-type', 'text/plain'],
    ['content-encoding', 'gzip'],
    ['content-language', 'de'],
  ];
  const without = (all: Map<string, string[]>) => [...all.keys()].filter((name) => !ours.has(name));

  test('a destination with a list of headers that it forwards sends these of an event, each as often as it came, and what says how to read the payload', () => {
    const all = sent(headers, of(['x-shop-topic', 'x-absent']));
    expect(without(all)).toEqual(['x-shop-topic', 'content-encoding']);
    expect(all.get('x-shop-topic')).toEqual(['orders/paid', 'again']);
    expect(all.get('content-type')).toEqual(['text/plain']);
    expect(all.get('webhook-id')).toEqual(['msg_a']);
    expect(without(sent(headers, of(['x_shop_topic'])))).toEqual(['x_shop_topic', 'content-encoding']);
  });

  test('a destination with a list of headers that it forwards sends none of them when it is empty, and its own headers all the same', () => {
    const all = sent(headers, of([], [{ name: 'X-Shop-Topic', value: 'own' }]));
    expect(without(all)).toEqual(['content-encoding', 'x-shop-topic']);
    expect(all.get('x-shop-topic')).toEqual(['own']);
  });

  test('a destination with a list of headers that it forwards sends its own header, or its credential, in place of that of the event', () => {
    const auth: HttpAuthRecord = { type: 'api_key', headerName: 'X-Other', key: 'own' };
    const all = sent(headers, of(['x-shop-topic', 'x-other'], [{ name: 'X-SHOP-TOPIC', value: 'own' }], auth));
    expect([all.get('x-shop-topic'), all.get('x-other')]).toEqual([['own'], ['own']]);
  });

  test('a destination with a list of headers that it forwards sends the webhook-id of the event when it has that in the list and does not sign', () => {
    expect(sent(headers, of(['webhook-id'])).get('webhook-id')).toEqual(['of the sender']);
    expect(sent(headers, of(['webhook-id'], [], none, [key])).get('webhook-id')).toEqual(['msg_a']);
  });

  test.each(['host', 'content-length', 'user-agent', 'proxy-authorization', 'sec-fetch-site', 'x-posthorn-attempt'])(
    'never sends %s of an event, whatever its record says',
    (name) => expect(sent([[name, 'forged']], of([name])).get(name)).toEqual(ours.get(name)),
  );

  test('a destination with a list of headers that it forwards sends x-posthorn-hop on, without which loops would not end', () => {
    expect(sent([['x-posthorn-hop', '2']], of([])).get('x-posthorn-hop')).toEqual(['3']);
  });
});
