import { expect, test } from '@jest/globals';
import { forwardedHeaders } from './forwarded-headers.ts';

test('names are lower case, repeated headers stay repeated, order and values stay', () => {
  const raw = ['Content-Type', 'application/json', 'X-Tag', 'one', 'x-tag', 'Two', 'Webhook-Id', 'msg_1'];
  expect(forwardedHeaders(raw, undefined)).toEqual([
    ['content-type', 'application/json'],
    ['x-tag', 'one'],
    ['x-tag', 'Two'],
    ['webhook-id', 'msg_1'],
  ]);
});

test.each([
  'Host',
  'Connection',
  'Keep-Alive',
  'Proxy-Authorization',
  'Proxy-Connection',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'Cookie',
  'Authorization',
  'Content-Length',
  'Expect',
  'X-Posthorn-Event-Id',
  'x-posthorn-failover',
])('%s is not forwarded', (name) => {
  expect(forwardedHeaders([name, 'x'], undefined)).toEqual([]);
});

test('what Connection names is not forwarded', () => {
  expect(forwardedHeaders(['X-Hop', '1', 'X-End', '2'], 'keep-alive, X-Hop')).toEqual([['x-end', '2']]);
});
