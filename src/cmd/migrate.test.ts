import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { processName } from '../data/membership/connected-processes.ts';
import { storeLayout } from '../data/registry/store-layout.ts';
import { commandConnection, type RedisClient } from '../redis/connection.ts';
import { readConfig } from './config.ts';
import { migrate } from './migrate.ts';

const layoutKey = 'posthorn:{cfg}:layout';
/** Unfinished bytes by account. */
const bytes = 'posthorn:{s0}:ub';
/** The name of a process of a release that supports only the layout before. */
const earlier = (role: string) => `posthorn-${role}-main@${storeLayout - 1}@posthorn%3A`;
let redis: RedisServer;
const clients: RedisClient[] = [];
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  await redis.client.hset('posthorn:{cfg}:rec:organization', 'org_a', '{}');
  // Bytes of an account that has no events.
  await redis.client.hset(bytes, { org_a: '5', '*': '5' });
});
afterEach(async () => {
  // Redis lists a client that has left without a word for a while.
  for (const client of clients.splice(0)) await client.quit();
});

async function connect(name: string): Promise<void> {
  const client = commandConnection(redis.url, { name });
  clients.push(client);
  await client.connect();
}

async function run(): Promise<{ code: number; lines: string[] }> {
  const lines: string[] = [];
  const config = readConfig('migrate', { POSTHORN_REDIS_URL: redis.url, POSTHORN_RESOURCE_STORE: 'redis' });
  return { code: await migrate(config, (line) => void lines.push(line)), lines };
}

test('migrate brings what is old into the form of today and reports it in Redis; a second time there is nothing to do', async () => {
  await connect(processName({ role: 'delivery', prefix: 'posthorn:', version: '1.3.0' }));
  const end = `everything is in layout ${storeLayout}`;
  expect(await run()).toEqual({ code: 0, lines: ['unfinished bytes in 1 shards: 2 figures corrected', end] });
  expect(await redis.client.hgetall(bytes)).toEqual({});
  expect(await redis.client.get(layoutKey)).toBe(String(storeLayout));
  expect(await run()).toEqual({ code: 0, lines: ['unfinished bytes in 1 shards: 0 figures corrected', end] });
});

test('migrate finishes what another one has begun', async () => {
  await redis.client.set(layoutKey, `${storeLayout} begun`);
  expect((await run()).code).toBe(0);
  expect(await redis.client.get(layoutKey)).toBe(String(storeLayout));
});

test('beside a process of an earlier release nothing is changed, and it is named', async () => {
  await connect(earlier('delivery'));
  const { code, lines } = await run();
  expect(code).toBe(1);
  expect(lines).toEqual([
    'a process of an earlier release is connected to Redis: delivery at 127.0.0.1',
    'nothing is migrated while they run: replace them, then run this again',
  ]);
  expect(await redis.client.hget(bytes, 'org_a')).toBe('5');
  expect(await redis.client.get(layoutKey)).toBeNull();
});

test('a process of an earlier release that comes while the migration begins is seen before anything is changed', async () => {
  await redis.client.call('CLIENT', 'PAUSE', 60_000, 'WRITE');
  const running = run();
  try {
    // It has seen no process, and cannot write that it begins.
    await eventually(async () => {
      const [migration] = String(await redis.client.call('CLIENT', 'LIST'))
        .split('\n')
        .filter((line) => line.includes('name=posthorn-migrate '));
      expect(migration).toMatch(/ flags=b /);
    }, 30_000);
    await connect(earlier('api'));
  } finally {
    await redis.client.call('CLIENT', 'UNPAUSE');
  }
  const { code, lines } = await running;
  expect(code).toBe(1);
  expect(lines[0]).toBe('a process of an earlier release is connected to Redis: api at 127.0.0.1');
  expect(await redis.client.hget(bytes, 'org_a')).toBe('5');
  expect(await redis.client.get(layoutKey)).toBe(`${storeLayout} begun`);
});
