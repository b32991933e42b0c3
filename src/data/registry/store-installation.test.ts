import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { claimStore } from './store-installation.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

test('what is below a key prefix is of the installation that was there first; others are refused and told what to do', async () => {
  const place = { redis: redis.client, prefix: 'shared:' };
  await claimStore(place, 'two');
  await claimStore(place, 'two');
  await expect(claimStore(place, 'default')).rejects.toMatchObject({
    code: 'INVALID_CONFIG',
    message: expect.stringMatching(
      /"shared:" is of the installation two, and POSTHORN_INSTALLATION is default: .*a Redis or a key prefix of its own/,
    ),
  });
  await claimStore({ ...place, prefix: 'own:' }, 'default');
  expect((await redis.client.keys('*')).sort()).toEqual(['own:{cfg}:installation', 'shared:{cfg}:installation']);
  expect(await redis.client.get('shared:{cfg}:installation')).toBe('two');
});
