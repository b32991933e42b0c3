import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { noteLayout, storeLayout } from '../registry/store-layout.ts';
import { ChunkReaders } from './chunk-readers.ts';

const prefix = 'test:';
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(() => redis.client.flushall());

const place = () => ({ redis: redis.client, prefix });

test.each([
  [null, false],
  ['0', false],
  [String(storeLayout - 1), false],
  [`${storeLayout} begun`, false],
  [String(storeLayout), true],
])('a store whose layout is %s is read by nobody of an earlier release: %s', async (layout, areAll) => {
  if (layout !== null) await redis.client.set(`${prefix}{cfg}:layout`, layout);
  expect(await new ChunkReaders({ ...place(), clock: new FakeClock() }).areAll()).toBe(areAll);
});

test('what a migration changes is seen after seconds, and never goes back', async () => {
  const clock = new FakeClock();
  const readers = new ChunkReaders({ ...place(), clock });
  expect(await readers.areAll()).toBe(false);
  await noteLayout(place(), 'begun');
  await noteLayout(place(), 'done');
  expect(await readers.areAll()).toBe(false);
  await clock.advance(5000);
  expect(await readers.areAll()).toBe(true);
  await redis.client.flushall();
  await clock.advance(60_000);
  expect(await readers.areAll()).toBe(true);
});
