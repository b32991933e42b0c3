import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { startProgram } from '../../test/support/program.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { Keyring } from '../core/sealing.ts';
import { systemClock } from '../runtime/system-clock.ts';
import { RedisStore } from '../store/redis/redis-store.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

test('a controller that leads finishes the deletion of orphans that a dead process has begun', async () => {
  const prefix = 'swept:';
  const key = randomBytes(32);
  const openBlocking = () => {
    throw new Error('nobody watches');
  };
  const store = new RedisStore({
    redis: redis.client,
    openBlocking,
    keyring: new Keyring([{ id: 'k1', key }]),
    clock: systemClock,
    prefix,
  });
  const create = (object: Parameters<typeof store.create>[0]) => store.create(object, { manager: 'test' });
  const owner = await create({ kind: 'Namespace', metadata: { name: 'owner' } });
  await create({ kind: 'Namespace', metadata: { name: 'shop' } });
  const reference = { apiVersion: 'v1', kind: 'Namespace', name: 'owner', uid: owner.metadata.uid };
  await create({ kind: 'Secret', metadata: { name: 'orphan', namespace: 'shop', ownerReferences: [reference] } });
  // As a process leaves it that dies between its steps.
  await redis.client.hdel(`${prefix}{store}:objects:Namespace`, '/owner');
  await redis.client.zrem(`${prefix}{store}:names:Namespace`, '/owner');
  const controller = startProgram(['controller'], {
    POSTHORN_REDIS_URL: redis.url,
    POSTHORN_REDIS_KEY_PREFIX: prefix,
    POSTHORN_RESOURCE_STORE: 'redis',
    POSTHORN_ENCRYPTION_KEYS: `k1:${key.toString('base64')}`,
    POSTHORN_OPS_PORT: '0',
  });
  try {
    await eventually('the end of the orphan', 30_000, async () => (await store.list('Secret')).items.length === 0);
    expect((await store.list('Namespace')).items.map(({ metadata }) => metadata.name)).toEqual(['shop']);
  } finally {
    await controller.stop();
  }
});
