import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { claimStore, requireOwnStore } from './store-installation.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

test('data below a key prefix belongs to the installation that was there first; others are refused with what to do', async () => {
  const place = { redis: redis.client, prefix: 'shared:' };
  await claimStore(place, 'two');
  await claimStore(place, 'two');
  await expect(claimStore(place, 'default')).rejects.toMatchObject({
    code: 'INVALID_CONFIG',
    message: expect.stringMatching(
      /"shared:" belongs to the installation two, and POSTHORN_INSTALLATION is default: .*a Redis or a key prefix of its own/,
    ),
  });
  await claimStore({ ...place, prefix: 'own:' }, 'default');
  expect((await redis.client.keys('*')).sort()).toEqual(['own:{cfg}:installation', 'shared:{cfg}:installation']);
  expect(await redis.client.get('shared:{cfg}:installation')).toBe('two');
});

test('data in the layout of a later release is not claimed', async () => {
  const place = { redis: redis.client, prefix: 'later:' };
  await redis.client.set('later:{cfg}:layout', '99');
  await claimStore(place, 'two');
  expect(await redis.client.keys('later:*')).toEqual(['later:{cfg}:layout']);
});

test('a reader of published records works with a store of its installation or of none yet, refuses another one, and writes nothing', async () => {
  const place = { redis: redis.client, prefix: 'read:' };
  await requireOwnStore(place, 'default');
  expect(await redis.client.exists('read:{cfg}:installation')).toBe(0);
  await claimStore(place, 'two');
  await requireOwnStore(place, 'two');
  await expect(requireOwnStore(place, 'default')).rejects.toMatchObject({
    code: 'INVALID_CONFIG',
    message: expect.stringContaining('belongs to the installation two, and POSTHORN_INSTALLATION is default'),
  });
});
