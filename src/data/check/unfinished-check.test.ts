import { globSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { eventForShards, newEvent } from '../../../test/support/new-event.ts';
import { dead, delivered, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { OutboxCarrier } from '../queue/outbox-carrier.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import { checkShards } from './shard-check.ts';
import { recountUnfinished } from './unfinished-check.ts';

const prefix = 'test:';
const shards = 2;
const [events, bytes] = [`${prefix}{s0}:ue`, `${prefix}{s0}:ub`];
let redis: RedisServer;
let queue: RedisDeliveryQueue;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const complaints = async (): Promise<string[]> =>
  (await checkShards({ redis: redis.client, prefix, shards })).findings.map(({ complaint }) => complaint).sort();
const figures = async () => [await redis.client.hgetall(events), await redis.client.hgetall(bytes)];
const recount = (): Promise<number> => recountUnfinished({ redis: redis.client, prefix, shards });

/** One event of each kind: waiting, ended, with messages that wait and that have ended, with a message that fails over to another shard, with messages for another shard, with many broken schemas and one message of them. */
beforeEach(async () => {
  await redis.client.flushall();
  queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  await queue.refreshShard('w1', 64);
  await new RedisDeliveryQueue({ redis: redis.client, prefix, shard: 1 }).refreshShard('w1', 64);
  const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  await acceptor.accept(newEvent({ destinations: ['dst_a', 'dst_b'] }));
  await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 1), delivered);
  await acceptor.accept(eventForShards([0]));
  const failover = { destinations: [{ id: 'dst_spare', shard: 1 }], afterAttempts: null };
  await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 64, { failover }), dead);
  // It is not sent yet.
  await acceptOnly(redis.client, prefix, eventForShards([0, 0, 1]));
  const broken = Array.from({ length: 101 }, (_, i) => [`rte_${i}`, 'no id']);
  await acceptOnly(redis.client, prefix, newEvent({ destinations: [], invalidRoutes: Object.fromEntries(broken) }));
  const [[last] = ['']] = await redis.client.xrevrange(`${prefix}{s0}:out`, '+', '-', 'COUNT', 1);
  await new OutboxCarrier({ redis: redis.client, prefix }).carryEntries(0, [last]);
  await acceptor.accept(newEvent());
});

test('the recorded parts and bytes equal those of the unfinished events, also while messages are on their way to another shard', async () => {
  expect(Object.keys((await figures())[0] ?? {}).length).toBeGreaterThanOrEqual(2);
  expect(await complaints()).toEqual([]);
  await new OutboxCarrier({ redis: redis.client, prefix }).carry(0);
  expect(await complaints()).toEqual([]);
  expect(await recount()).toBe(0);
});

test('holds of an event that end in one call and in several calls are recorded until the last one has ended', async () => {
  await redis.client.flushall();
  await queue.refreshShard('w1', 64);
  const event = newEvent({ destinations: ['dst_a', 'dst_b', 'dst_c', 'dst_d'] });
  await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock }).accept(event);
  const jobs = await takeFrom(queue, 'w1', 64);
  expect(jobs).toHaveLength(4);
  const holds: (string | undefined)[] = [];
  for (const some of [jobs.slice(0, 2), jobs.slice(2, 3), jobs.slice(3)]) {
    await settleAll(queue, 'w1', some, delivered);
    holds.push((await redis.client.hvals(events))[0]?.split(' ')[0]);
    expect(await complaints()).toEqual([]);
  }
  expect(holds).toEqual(['2', '1', undefined]);
  expect(await redis.client.hgetall(bytes)).toEqual({});
});

test('unfinished events without a record are found and counted again', async () => {
  const before = await figures();
  await redis.client.del(events, bytes);
  expect((await complaints())[0]).toMatch(/^has \d unfinished parts, and 0 is stored$/);
  expect(await recount()).toBeGreaterThan(1);
  expect(await figures()).toEqual(before);
  expect(await complaints()).toEqual([]);
});

test('a record of an event that is gone, a wrong record, and wrong figures of accounts are found and corrected', async () => {
  const before = await figures();
  const [event = ''] = await redis.client.hkeys(events);
  await redis.client.hset(events, { [event]: '7 100', gone: '1 100' });
  await redis.client.hset(bytes, { org_gone: '5', '*': '1' });
  expect(await complaints()).toEqual(
    expect.arrayContaining(['has 0 unfinished parts, and 1 100 is stored', expect.stringMatching(/and 7 100 is stored$/)]),
  );
  await recount();
  expect(await complaints()).toEqual([]);
  expect(await figures()).toEqual(before);
});

test('every script that may change unfinished events writes the changes', () => {
  const folder = new URL('../', import.meta.url);
  const scripts = globSync('*/*.lua', { cwd: folder }).sort();
  const changing = scripts.filter((name) =>
    /^-- @include ".*\/unfinished(-changes)?.lua"$/m.test(readFileSync(new URL(name, folder), 'utf8')),
  );
  const writing = scripts.filter((name) => /^ *write_unfinished\(\)$/m.test(readFileSync(new URL(name, folder), 'utf8')));
  expect(changing.length).toBeGreaterThan(10);
  expect(writing).toEqual(changing);
});
