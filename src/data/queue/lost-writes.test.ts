import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { eventForShards } from '../../../test/support/new-event.ts';
import { dead, delivered, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { scanKeys } from '../../redis/scan-keys.ts';
import { checkShards } from '../check/shard-check.ts';
import { shardBase, shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';
import { OutboxCarrier } from './outbox-carrier.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const home = shardBase(prefix, 0);

let redis: RedisServer;
let queues: [RedisDeliveryQueue, RedisDeliveryQueue];
let carrier: OutboxCarrier;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  queues = [0, 1].map((shard) => new RedisDeliveryQueue({ redis: redis.client, prefix, shard })) as typeof queues;
  carrier = new OutboxCarrier({ redis: redis.client, prefix });
  for (const queue of queues) await queue.refreshShard('w1', 1000);
});

/** Copies shard 0. Returns what puts it back, as a failover does to a replica that lacks the last writes. */
async function replicaOfHome(): Promise<() => Promise<void>> {
  const keys = await scanKeys(redis.client, home, '*');
  const copies = await Promise.all(
    keys.map(async (key) => ({ key, dump: await redis.client.dumpBuffer(key), ttl: await redis.client.pttl(key) })),
  );
  return async () => {
    for (const key of await scanKeys(redis.client, home, '*')) await redis.client.del(key);
    for (const { key, dump, ttl } of copies) if (dump !== null) await redis.client.restore(key, Math.max(0, ttl), dump);
  };
}

/** Ids of the entries of all streams of shard 0 whose entries are remembered elsewhere, `<stream>/<id>`. */
async function entriesOfHome(): Promise<string[]> {
  const streams = (await scanKeys(redis.client, home, '*')).filter((key) => /:(out|ends|circuits|w:.*)$/.test(key));
  const entries = await Promise.all(streams.map(async (key) => (await redis.client.xrange(key, '-', '+')).map(([id]) => `${key}/${id}`)));
  return entries.flat();
}

const take = (shard: 0 | 1) => takeFrom(queues[shard], 'w1', 64);

test('an event that is accepted after a failover reaches other shards, though the failover has lost the event before it', async () => {
  const failOver = await replicaOfHome();
  await acceptOnly(redis.client, prefix, eventForShards([0, 1]));
  await carrier.carry(0);
  await settleAll(queues[1], 'w1', await take(1), delivered);
  await failOver();
  const event = eventForShards([0, 1]);
  await acceptOnly(redis.client, prefix, event);
  await carrier.carry(0);
  expect(await take(1)).toMatchObject([{ eventId: event.id, messageId: event.targets[1]?.messageId }]);
  expect((await checkShards({ redis: redis.client, prefix, shards: 2 })).findings).toEqual([]);
});

test('a carrier that ends an entry which a failover has lost does not end a new one', async () => {
  const failOver = await replicaOfHome();
  await acceptOnly(redis.client, prefix, eventForShards([0, 1]));
  const [[lost = ''] = []] = await redis.client.xrange(`${home}out`, '-', '+');
  await failOver();
  const event = eventForShards([0, 1]);
  await acceptOnly(redis.client, prefix, event);
  await new ShardScript(new URL('./outbox-done.lua', import.meta.url)).run(redis.client, shardKeys(prefix, 0).declared, [lost, '']);
  await carrier.carry(0);
  expect(await take(1)).toMatchObject([{ eventId: event.id }]);
});

test('no stream of a shard has an id again that a failover has lost', async () => {
  const failOver = await replicaOfHome();
  const work = async (): Promise<string[]> => {
    const seen = new Set<string>();
    for (let i = 0; i < 6; i++) {
      await acceptOnly(redis.client, prefix, eventForShards([0, 1]));
      for (const entry of await entriesOfHome()) seen.add(entry);
      await settleAll(queues[0], 'w1', await take(0), dead);
      for (const entry of await entriesOfHome()) seen.add(entry);
    }
    return [...seen];
  };
  const before = await work();
  await failOver();
  const after = await work();
  const streams = (entries: readonly string[]): string[] => [...new Set(entries.map((entry) => entry.replace(/\/[^/]*$/, '')))].sort();
  expect(streams(before)).toEqual(expect.arrayContaining([`${home}out`, `${home}w:1`]));
  expect(streams(after)).toEqual(streams(before));
  expect(after.filter((entry) => before.includes(entry))).toEqual([]);
});
