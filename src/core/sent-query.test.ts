import { describe, expect, test } from '@jest/globals';
import { isSentCredentialParameter } from './credential-names.ts';
import { keptQuery, queryOf, queryParameters, withQuery } from './sent-query.ts';

test.each([
  ['/ingest/acme/shop', ''],
  ['/ingest/acme/shop?', ''],
  ['/ingest/acme/shop?a=1&a=2', 'a=1&a=2'],
  ['/ingest/acme/shop?a=1#b=2', 'a=1'],
  ['/ingest/acme/shop?a?b=%2f+c', 'a?b=%2f+c'],
  ['/ingest/acme/shop#?a=1', ''],
  [`/ingest/acme/shop?name=${Buffer.from('ü').toString('latin1')}`, 'name=%C3%BC'],
])('the query of %s is %j', (target, query) => expect(queryOf(target)).toBe(query));

test.each<[string, object]>([
  ['', {}],
  ['&&', {}],
  ['device=7&state=on', { device: '7', state: 'on' }],
  ['tag=a&x=1&tag=b&tag=', { tag: ['a', 'b', ''], x: '1' }],
  ['flag&empty=', { flag: '', empty: '' }],
  ['a=b=c', { a: 'b=c' }],
  ['=v', { '': 'v' }],
  ['full+name=Jo%C3%A3o+B%2B', { 'full name': 'João B+' }],
  ['bad=100%&worse=%FF+%zz&ok=%41', { bad: '100%', worse: '%FF+%zz', ok: 'A' }],
  ['%zz=1&a%20b=2', { '%zz': '1', 'a b': '2' }],
  ['ids[]=1&ids%5B%5D=2', { 'ids[]': ['1', '2'] }],
  ['constructor=1&toString=2', { constructor: '1', toString: '2' }],
])('the query %j has these parameters', (query, parameters) => expect(queryParameters(query)).toEqual(parameters));

test('a parameter may be named __proto__', () => {
  const parameters = queryParameters('__proto__=1&a=2');
  expect(JSON.stringify(parameters)).toBe('{"__proto__":"1","a":"2"}');
  expect(Object.getPrototypeOf(parameters)).toBe(Object.prototype);
});

describe('the query that is kept', () => {
  test.each([
    ['', ''],
    ['a=%2F+b&&c=100%&a', 'a=%2F+b&&c=100%&a'],
    ['token=s', ''],
    ['a=1&token=s&b=2', 'a=1&b=2'],
    ['a=1&to%6Ben=s&API_KEY=s&apiKey=s&x-access-token=s', 'a=1'],
    ['sig=s&signature=s&code=s&hub.verify_token=s&token[]=s&auth%5Bkey%5D=s&key[0]=s&&b', '&b'],
    ['a=1;token=s&b=2;c=3&to%6Ben;d', 'b=2;c=3'],
    [`token${'[]'.repeat(200)}=s&a[0][12]=1&key]]=s&a[b][]=1`, 'a[0][12]=1&a[b][]=1'],
    ['country_code=DE&errorCode=1&idempotency_key=a&page_token=b', 'country_code=DE&errorCode=1&idempotency_key=a&page_token=b'],
    ['MessageSid=SM1&AccountSid=AC1&sid=s&connect.sid=s', 'MessageSid=SM1&AccountSid=AC1'],
  ])('the query that is kept of %j is %j', (query, kept) => expect(keptQuery(query)).toBe(kept));

  test.each(['password', 'client_secret', 'x_session', 'hmac', 'X-Amz-Signature'])('the query that is kept has no %s', (name) =>
    expect(isSentCredentialParameter(name)).toBe(true),
  );
});

test.each([
  ['/hooks', '', '/hooks'],
  ['/hooks', 'a=%2f+1&a=%', '/hooks?a=%2f+1&a=%'],
  ['/hooks?own=1', 'a=2', '/hooks?own=1&a=2'],
  ['/hooks?own=1', '', '/hooks?own=1'],
  ['/hooks?', 'a=2', '/hooks?a=2'],
  ['/hooks?own=1&', 'a=2', '/hooks?own=1&a=2'],
  ['/', '//evil.example/?x', '/?//evil.example/?x'],
])('%s with the query %j is %s', (path, query, whole) => expect(withQuery(path, query)).toBe(whole));
