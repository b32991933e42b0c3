import { expect, test } from '@jest/globals';
import { providers } from '../core/providers.ts';
import { forwardedHeaders } from './forwarded-headers.ts';

const sent = { connection: undefined, provider: 'generic' } as const;

test('names are lower case, repeated headers stay repeated, order and values stay', () => {
  const raw = ['Content-Type', 'application/json', 'X-Tag', 'one', 'x-tag', 'Two', 'Webhook-Id', 'msg_1'];
  expect(forwardedHeaders(raw, sent)).toEqual([
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
  expect(forwardedHeaders([name, 'x'], sent)).toEqual([]);
});

test('what Connection names is not forwarded', () => {
  expect(forwardedHeaders(['X-Hop', '1', 'X-End', '2'], { ...sent, connection: 'keep-alive, X-Hop' })).toEqual([['x-end', '2']]);
});

test.each(providers)('X-Gitlab-Token of provider %s is forwarded unless it is the secret', (provider) => {
  const forwarded = forwardedHeaders(['X-Gitlab-Token', 'token', 'X-Gitlab-Event', 'Push Hook'], { ...sent, provider });
  expect(forwarded.map(([name]) => name)).toEqual(provider === 'gitlab' ? ['x-gitlab-event'] : ['x-gitlab-token', 'x-gitlab-event']);
});
