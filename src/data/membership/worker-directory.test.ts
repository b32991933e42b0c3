import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { agreeOnShards } from './shard-count.ts';
import { knownWorkers, RedisWorkerDirectory, workerKeys, workerLifetimeMs } from './worker-directory.ts';

const prefix = 'test:';
const keys = workerKeys(prefix);
let redis: RedisServer;
let directory: RedisWorkerDirectory;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  directory = new RedisWorkerDirectory({ redis: redis.client, prefix, shards: 1, version: '1.2.3' });
});

const known = (most = 10) => knownWorkers({ redis: redis.client, prefix }, most);

/** As a worker of a release beats that has no version there. */
async function beatOfEarlierRelease(worker: string): Promise<void> {
  await redis.client.zadd(keys.alive, Date.now() + workerLifetimeMs, worker);
  await redis.client.hset(keys.slots, worker, 10);
}

/** Lets the time of a worker's last beat lie so far back. */
async function silence(worker: string, ms: number): Promise<void> {
  await redis.client.zincrby(keys.alive, -ms, worker);
}

test('the directory has the living workers, and what they can do together', async () => {
  await directory.heartbeat('w1', 100);
  expect(await directory.heartbeat('w2', 28)).toEqual({ totalSlots: 128, shards: 1, dead: [] });
});

test('names a worker that has been silent for its lifetime until it is forgotten', async () => {
  const beforeMs = Date.now();
  await directory.heartbeat('w1', 10);
  const endsAtMs = Number(await redis.client.zscore(keys.alive, 'w1'));
  expect(endsAtMs).toBeGreaterThanOrEqual(beforeMs + workerLifetimeMs);
  expect(endsAtMs).toBeLessThanOrEqual(Date.now() + workerLifetimeMs);
  expect((await directory.heartbeat('w2', 10)).dead).toEqual([]);
  await silence('w1', workerLifetimeMs);
  expect((await directory.heartbeat('w2', 10)).dead).toEqual(['w1']);
  await directory.forget('w1');
  expect(await directory.heartbeat('w2', 10)).toMatchObject({ totalSlots: 10, dead: [] });
});

test('the directory keeps a worker that has beaten meanwhile', async () => {
  await directory.heartbeat('w1', 10);
  await directory.forget('w1');
  expect(await directory.heartbeat('w2', 10)).toMatchObject({ totalSlots: 20 });
});

test('after no worker could send a heartbeat for a while each worker has a whole lifetime to come back', async () => {
  await directory.heartbeat('w1', 10);
  await silence('w1', workerLifetimeMs + 1000);
  await redis.client.hincrby(keys.pulse, 'last', -workerLifetimeMs);
  expect((await directory.heartbeat('w2', 10)).dead).toEqual([]);
  expect((await directory.heartbeat('w2', 10)).dead).toEqual([]);
  await redis.client.hset(keys.pulse, 'mute', 1);
  expect((await directory.heartbeat('w2', 10)).dead).toEqual(['w1']);
});

test('a worker that ends is gone at once; what it may hold is put back without delay', async () => {
  await directory.heartbeat('w1', 10);
  await directory.heartbeat('w2', 10);
  await directory.leave('w1', { mayHoldWork: false });
  expect(await directory.heartbeat('w3', 10)).toMatchObject({ totalSlots: 20, dead: [] });
  await redis.client.hset(keys.pulse, 'mute', Date.now() + 60_000);
  await directory.leave('w2', { mayHoldWork: true });
  expect(await directory.heartbeat('w3', 10)).toMatchObject({ totalSlots: 10, dead: ['w2'] });
});

test('the number of shards only grows', async () => {
  expect(await agreeOnShards({ redis: redis.client, prefix, known: 0 })).toBe(0);
  expect(await agreeOnShards({ redis: redis.client, prefix, known: 16 })).toBe(16);
  expect(await agreeOnShards({ redis: redis.client, prefix, known: 4 })).toBe(16);
  expect((await directory.heartbeat('w1', 10)).shards).toBe(16);
  expect(await agreeOnShards({ redis: redis.client, prefix, known: 0 })).toBe(16);
});

test('the directory has the version of each worker, and how many run each, also of workers that are not listed', async () => {
  const later = new RedisWorkerDirectory({ redis: redis.client, prefix, shards: 1, version: '1.3.0' });
  await directory.heartbeat('w1', 10);
  await later.heartbeat('w2', 10);
  await later.heartbeat('w3', 10);
  await beatOfEarlierRelease('w4');
  const { workers, versions } = await known();
  expect(new Map(workers.map(({ id, version }) => [id, version]))).toEqual(
    new Map([
      ['w1', '1.2.3'],
      ['w2', '1.3.0'],
      ['w3', '1.3.0'],
      ['w4', null],
    ]),
  );
  const counts = new Map<string | null, number>([
    ['1.2.3', 1],
    ['1.3.0', 2],
    [null, 1],
  ]);
  expect(new Map(versions.map(({ version, workers: number }) => [version, number]))).toEqual(counts);
  const few = await known(1);
  expect([few.workers.length, few.versions.length]).toEqual([1, 3]);
});

test('the version of a worker that is dead, or has left, is not one that runs', async () => {
  await directory.heartbeat('w1', 10);
  await directory.heartbeat('w2', 10);
  await silence('w1', workerLifetimeMs + 1000);
  await directory.leave('w2', { mayHoldWork: true });
  const { workers, versions } = await known();
  expect([workers.map(({ version }) => version), versions]).toEqual([['1.2.3', '1.2.3'], []]);
  await directory.leave('w2', { mayHoldWork: false });
  await directory.forget('w1');
  expect(await redis.client.exists(keys.versions)).toBe(0);
});

test('a version that a worker of an earlier release has left of a forgotten one goes with the next heartbeat', async () => {
  await directory.heartbeat('w1', 10);
  await redis.client.zrem(keys.alive, 'w1');
  await redis.client.hdel(keys.slots, 'w1');
  expect(await redis.client.hkeys(keys.versions)).toEqual(['w1']);
  await directory.heartbeat('w2', 10);
  expect(await redis.client.hkeys(keys.versions)).toEqual(['w2']);
});
