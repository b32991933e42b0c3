import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { OrganizationLock, organizationLockKeys } from './organization-lock.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

test('a lock is renewed for as long as its holder works, and free afterwards', async () => {
  const clock = new FakeClock();
  const lock = new OrganizationLock({ redis: redis.client, prefix: 'test:', clock, logger: silentLogger });
  const { lock: key } = organizationLockKeys('test:', 'org_a');
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const held = lock.run('org_a', async () => {
    begin();
    await finished;
  });
  await begun;
  for (let round = 0; round < 3; round++) {
    await redis.client.pexpire(key, 15_000);
    await clock.advance(10_000);
    await eventually(async () => expect(await redis.client.pttl(key)).toBeGreaterThan(20_000));
  }
  finish();
  await held;
  expect(await redis.client.exists(key)).toBe(0);
});

test('a lock that another holds by now is not renewed', async () => {
  const clock = new FakeClock();
  const lock = new OrganizationLock({ redis: redis.client, prefix: 'test:', clock, logger: silentLogger });
  const { lock: key } = organizationLockKeys('test:', 'org_b');
  await lock.run('org_b', async () => {
    await redis.client.set(key, 'another', 'PX', 15_000);
    await clock.advance(10_000);
    await redis.client.ping();
    expect(await redis.client.pttl(key)).toBeLessThanOrEqual(15_000);
  });
  expect(await redis.client.get(key)).toBe('another');
});
