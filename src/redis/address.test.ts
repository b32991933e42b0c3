import { expect, test } from '@jest/globals';
import { describeRedis, redisNodes } from './address.ts';

test.each([
  ['redis://localhost', [{ host: 'localhost', port: 6379 }], undefined, undefined, 0],
  ['redis://:p%40ss@one:1/2', [{ host: 'one', port: 1 }], undefined, 'p@ss', 2],
  [
    'rediss://me:a:b@one,[::1]:7000',
    [
      { host: 'one', port: 6379 },
      { host: '::1', port: 7000 },
    ],
    'me',
    'a:b',
    0,
  ],
])('the parser takes %s apart', (url, nodes, username, password, database) => {
  expect(redisNodes(url)).toEqual({ nodes, path: null, usesTls: url.startsWith('rediss'), username, password, database });
});

test.each(['http://one', 'redis://', 'redis://one:x', 'redis://one/db', 'redis://a b', 'redis://u:%zz@one'])(
  'the parser refuses %s',
  (url) => {
    expect(() => redisNodes(url)).toThrow('must be redis://');
  },
);

test('the description of a Redis is its address without the password', () => {
  expect(describeRedis('redis://me:secret@one,two:7000/1')).toBe('one:6379,two:7000');
  expect(describeRedis('/run/redis.sock')).toBe('/run/redis.sock');
});
