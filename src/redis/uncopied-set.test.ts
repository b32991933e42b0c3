import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { largePayload } from '../../test/support/large-payloads.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { setUncopied } from './uncopied-set.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(() => redis.client.flushall());

test.each<[string, Buffer]>([
  ['half a MiB', largePayload(524_288)],
  ['line breaks', Buffer.from('\r\n$3\r\n\r\n')],
  ['no bytes', Buffer.alloc(0)],
  ['bytes that are no text', Buffer.from([0xff, 0x00, 0xc3, 0x28])],
])('A value of %s is set as it is, with its lifetime.', async (_what, value) => {
  await setUncopied(redis.client, 'kü:1', value, ['PX', 60_000, 'NX']);
  expect((await redis.client.getBuffer('kü:1'))?.equals(value)).toBe(true);
  expect(await redis.client.pttl('kü:1')).toBeGreaterThan(0);
});

test('It takes its place among the commands of one turn, and each has its own answer.', async () => {
  const value = largePayload(300_000);
  const answers = await Promise.all([
    redis.client.set('a', '1'),
    setUncopied(redis.client, 'b', value, ['PX', 60_000, 'NX']),
    redis.client.get('a'),
    setUncopied(redis.client, 'b', Buffer.from('other'), ['PX', 60_000, 'NX']),
    redis.client.strlen('b'),
    redis.client.get('missing'),
  ]);
  expect(answers).toEqual(['OK', undefined, '1', undefined, 300_000, null]);
});

test('It rejects with what Redis says.', async () => {
  await expect(setUncopied(redis.client, 'a', Buffer.from('1'), ['PX', 'never'])).rejects.toThrow(/ERR/);
  expect(await redis.client.ping()).toBe('PONG');
});

test('It is refused at once without a connection.', async () => {
  const client = redis.client.duplicate({ lazyConnect: true, enableOfflineQueue: false });
  client.on('error', () => {});
  await expect(setUncopied(client, 'a', Buffer.from('1'), ['PX', 1])).rejects.toThrow();
  client.disconnect();
});
