import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { RedisRegistryPublisher } from './registry-publisher.ts';
import { noteLayout, requireReadableLayout, storeLayout } from './store-layout.ts';

const prefix = 'test:';
const key = `${prefix}{cfg}:layout`;
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(() => redis.client.flushall());

const place = () => ({ redis: redis.client, prefix });
const stored = () => redis.client.get(key);

test.each(['', '0', String(storeLayout), `${storeLayout} begun`])('a store that says "%s" of its layout is read', async (layout) => {
  if (layout !== '') await redis.client.set(key, layout);
  await requireReadableLayout(place());
});

test.each([String(storeLayout + 1), `${storeLayout + 1} begun`, 'v2;shards=16'])(
  'a store that says "%s" is refused, with what to do, and stays as it is',
  async (layout) => {
    await redis.client.set(key, layout);
    const refusal = { code: 'INVALID_CONFIG', message: expect.stringMatching(/later release.*reads layouts up to \d+: run the release/) };
    await expect(requireReadableLayout(place())).rejects.toMatchObject(refusal);
    await expect(noteLayout(place(), 'begun')).rejects.toMatchObject(refusal);
    await expect(noteLayout(place(), 'done')).rejects.toMatchObject(refusal);
    expect(await stored()).toBe(layout);
  },
);

test('a migration is recorded when it begins and when it is done, and one that is repeated takes nothing back', async () => {
  await noteLayout(place(), 'begun');
  expect(await stored()).toBe(`${storeLayout} begun`);
  await noteLayout(place(), 'begun');
  expect(await stored()).toBe(`${storeLayout} begun`);
  await noteLayout(place(), 'done');
  expect(await stored()).toBe(String(storeLayout));
  await noteLayout(place(), 'begun');
  expect(await stored()).toBe(String(storeLayout));
});

test('a new store is in the layout of its first leader; one that has had a leader keeps what it says', async () => {
  const leader = new RedisRegistryPublisher(redis.client, prefix);
  await leader.mintEpoch();
  expect(await stored()).toBe(String(storeLayout));
  await redis.client.del(key);
  await leader.mintEpoch();
  expect(await stored()).toBeNull();
});
