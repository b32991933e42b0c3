import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Keyring } from '../../src/core/sealing.ts';
import { registryKeys } from '../../src/data/registry/registry-keys.ts';
import { blockingConnection } from '../../src/redis/connection.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { RedisStore } from '../../src/store/redis/redis-store.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { type Program, startProgram } from '../support/program.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

const prefix = 'posthorn:';
const keys = registryKeys(prefix);
const leaderKey = `${prefix}{cfg}:leader`;
const encryptionKey = Buffer.alloc(32, 1);
/** A lock is lost after ten seconds without an answer. */
const deadlineMs = 60_000;

let redis: RedisServer;
let store: RedisStore;
let controller: Program;

beforeAll(async () => {
  redis = await startRedis(['--save', '', '--appendonly', 'yes', '--appendfsync', 'always']);
  store = new RedisStore({
    redis: redis.client,
    openBlocking: () => blockingConnection(redis.url, { blockMs: 5000 }),
    keyring: new Keyring([{ id: 'k1', key: encryptionKey }]),
    prefix,
    clock: systemClock,
  });
  controller = startProgram(['controller'], {
    POSTHORN_REDIS_URL: redis.url,
    POSTHORN_RESOURCE_STORE: 'redis',
    POSTHORN_ENCRYPTION_KEYS: `k1:${encryptionKey.toString('base64')}`,
    POSTHORN_OPS_PORT: String(await freePort()),
  });
  await leads(1);
}, 120_000);
afterAll(async () => {
  await controller?.stop();
  store?.close();
  await redis?.stop();
});

/** Waits until it has begun to lead that many times. */
async function leads(times: number): Promise<void> {
  await controller.waitForOutput(new RegExp(`(?:controllers are running.*\\n[\\s\\S]*){${times}}`), deadlineMs);
}

async function publishes(name: string): Promise<void> {
  await eventually('Redis to be reachable', deadlineMs, async () => (await redis.client.ping().catch(() => undefined)) && true);
  await store.apply({ kind: 'Organization', metadata: { name }, spec: { namespace: name } }, { manager: 'test' });
  await eventually(`${name} to be published`, deadlineMs, async () =>
    (await redis.client.hvals(keys.records('organization'))).some((record) => record.includes(`"${name}"`)),
  );
}

test('a leader whose lock is gone with Redis waits for it, in the same process, and leads again', async () => {
  await publishes('before');
  const epoch = Number(await redis.client.get(keys.epoch));
  await redis.kill('SIGKILL');
  await controller.waitForOutput(/rejoins the election/, deadlineMs);
  const lines = controller.output().split('\n').length;
  await redis.start();
  await leads(2);
  await publishes('after');
  expect(Number(await redis.client.get(keys.epoch))).toBeGreaterThan(epoch);
  // Once for each cache, the lock and the rest.
  expect(lines).toBeLessThan(40);
}, 240_000);

test('a leader whose lock another has taken waits until it is free, and leads again', async () => {
  await redis.client.set(leaderKey, 'another');
  await controller.waitForOutput(/another candidate holds the lock[\s\S]*rejoins the election/, deadlineMs);
  await redis.client.del(leaderKey);
  await leads(3);
  await publishes('again');
}, 240_000);
