import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { messageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { delivered, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { defaultPool } from '../../core/default-pool.ts';
import { CronDoorbell, CronRuns } from '../cron/cron-runs.ts';
import { RedisWorkerDirectory } from '../membership/worker-directory.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import { Doorbell } from '../queue/doorbell.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import { OrganizationPools } from './organization-pools.ts';

const prefix = 'test:';
const world = messageQueueSuite(prefix);
let pools: OrganizationPools;
/** Queue of the pool `x`; that of the world is of the default one. */
let queue: RedisDeliveryQueue;
let runs: { here: CronRuns; there: CronRuns };

beforeAll(() => {
  const options = { redis: world.redis.client, prefix };
  pools = new OrganizationPools({ ...options, shards: 1 });
  queue = new RedisDeliveryQueue({ ...options, pool: 'x' });
  runs = { here: new CronRuns(options), there: new CronRuns({ ...options, pool: 'x' }) };
});
beforeEach(() => queue.refreshShard('w@x', 64));

async function accept(count: number, org = 'org_a', destinations = ['dst_a']): Promise<void> {
  for (let k = 0; k < count; k++) await world.acceptor.accept({ ...newEvent({ destinations }), org });
}
const here = (count = 64) => takeFrom(world.queue, 'w1', count);
const there = (count = 64) => takeFrom(queue, 'w@x', count);
const keys = async (pattern: string) => (await world.redis.client.keys(`${prefix}{s0}:${pattern}`)).sort();

test('what an organization has is given to workers of its pool alone, and after a move to those of the other', async () => {
  await pools.assign('org_a', 'x');
  await accept(3);
  expect(await here()).toHaveLength(0);
  const held = await there(2);
  expect(held).toHaveLength(2);
  await pools.assign('org_a', defaultPool);
  expect(await there()).toHaveLength(0);
  expect(await here()).toHaveLength(1);
  expect(await settleAll(queue, 'w@x', held, delivered)).toEqual([true, true]);
  await accept(1);
  expect(await here()).toHaveLength(1);
  expect(await keys('*@x')).toEqual([]);
});

test('a move wakes a worker that sleeps at the doorbell of the new pool, and so does an event after it', async () => {
  const bell = () => new Doorbell({ redis: world.redis.client.duplicate({ lazyConnect: true }), prefix, pool: 'x' });
  const doorbells = [bell(), bell()] as const;
  await accept(1);
  await pools.assign('org_a', 'x');
  expect(await doorbells[0].wait()).toEqual({ shard: 0, isFirst: true });
  await settleAll(queue, 'w@x', await there(), delivered);
  const rang = doorbells[1].wait();
  await accept(1);
  expect(await rang).toMatchObject({ shard: 0 });
  for (const each of doorbells) each.close();
});

test('an organization that comes with much behind it takes turns with those that are there', async () => {
  await accept(400);
  for (let jobs = await here(); jobs.length > 0; jobs = await here()) await settleAll(world.queue, 'w1', jobs, delivered);
  await pools.assign('org_b', 'x');
  await accept(1, 'org_b', ['dst_b']);
  await settleAll(queue, 'w@x', await there(), delivered);
  await pools.assign('org_a', 'x');
  await accept(20);
  await accept(20, 'org_b', ['dst_b']);
  const ofA = (await there(8)).filter(({ target }) => target.org === 'org_a').length;
  expect(ofA).toBeGreaterThanOrEqual(3);
  expect(ofA).toBeLessThanOrEqual(5);
});

test('hanging targets of one pool take nothing from those of another', async () => {
  for (const org of ['org_a', 'org_b', 'org_c'])
    await accept(
      20,
      org,
      Array.from({ length: 10 }, (_, k) => `dst_${org}${k}`),
    );
  while ((await here()).length > 0);
  await pools.assign('org_new', 'x');
  await accept(4, 'org_new', ['dst_new']);
  expect(await there()).toHaveLength(4);
  // What hangs of an organization that moves counts where it goes.
  await pools.assign('org_a', 'x');
  const held = await world.redis.client.zrange(`${prefix}{s0}:slow:org_a`, '0', '-1');
  expect(held.length).toBeGreaterThan(0);
  expect(await world.redis.client.zrange(`${prefix}{s0}:slow@x`, '0', '-1')).toEqual(expect.arrayContaining(held));
  expect(await world.redis.client.zinter(2, `${prefix}{s0}:slow`, `${prefix}{s0}:slow:org_a`)).toEqual([]);
});

test('places of slow targets are released also when the last organization has left the pool meanwhile', async () => {
  await pools.assign('org_a', 'x');
  await accept(2);
  const held = await there();
  await pools.assign('org_a', defaultPool);
  await settleAll(queue, 'w@x', held, delivered);
  expect(await keys('slow*')).toEqual([]);
});

test('the backlog and the oldest message are those of the pool', async () => {
  await accept(30);
  await pools.assign('org_b', 'x');
  await accept(7, 'org_b', ['dst_b']);
  expect(await world.queue.figures()).toMatchObject({ unfinished: 37, backlog: 30 });
  expect(await queue.figures()).toMatchObject({ unfinished: 37, backlog: 7 });
  await pools.assign('org_a', 'x');
  expect(await world.queue.figures()).toMatchObject({ backlog: 0, oldestUnreadAtMs: null });
  expect(await queue.figures()).toMatchObject({ backlog: 37, oldestUnreadAtMs: expect.any(Number) });
  for (let k = 0; k < 300; k++) await pools.assign(`org_idle${k}`, 'x');
  expect(await queue.figures()).toMatchObject({ backlog: 37 });
});

test('slots are counted by pool', async () => {
  const directory = new RedisWorkerDirectory({ redis: world.redis.client, prefix, shards: 1, version: '1.2.3' });
  await directory.heartbeat('w_a', 64);
  await directory.heartbeat('w_b', 64);
  expect(await directory.heartbeat('w_c@x', 10)).toMatchObject({ totalSlots: 10 });
  expect(await directory.heartbeat('w_a', 64)).toMatchObject({ totalSlots: 128 });
});

/** Queues a run of each of so many jobs. */
async function queueRuns(count: number, org = 'org_a'): Promise<void> {
  const jobs = Array.from({ length: count }, (_, k) => `${org}_${k}`);
  await runs.here.seen(
    jobs.map((id) => ({ id, revision: 'r' })),
    1,
  );
  const slotMs = (Math.max(0, ...(await runs.here.lastSlots()).values()) || 1) + 1;
  const claims = jobs.map((jobId) => ({ id: `exec_${jobId}_${slotMs}`, jobId, org, slotMs, timeoutMs: 1000, revision: 'r' }));
  expect(await runs.here.claim(claims)).toBe(count);
}
let takes = 0;
const organizationsOf = async (of: CronRuns, count = 64) => (await of.take(`t${++takes}`, count, [])).runs.map(({ org }) => org);

test('runs of cron jobs are given to workers of the pool alone, and those that wait go where the organization goes', async () => {
  await pools.assign('org_a', 'x');
  await queueRuns(3);
  await queueRuns(1, 'org_b');
  expect(await organizationsOf(runs.here)).toEqual(['org_b']);
  expect([await runs.here.organizationsWaiting(), await runs.there.organizationsWaiting()]).toEqual([0, 1]);
  expect(await organizationsOf(runs.there, 1)).toEqual(['org_a']);
  // As when its pool was deleted.
  await pools.assign('org_a', defaultPool);
  expect(await organizationsOf(runs.there)).toEqual([]);
  expect(await organizationsOf(runs.here)).toEqual(['org_a', 'org_a']);
  await queueRuns(3);
  expect(await organizationsOf(runs.here)).toHaveLength(3);
  expect(await world.redis.client.keys('*@*')).toEqual([]);
});

test('a run of a cron job, and a move of those that wait, wake a worker that sleeps at the doorbell of the pool', async () => {
  const bell = (pool: string) =>
    new CronDoorbell({ redis: world.redis.client, blocking: world.redis.client.duplicate({ lazyConnect: true }), prefix, pool });
  const bells = [bell('x'), bell('y')] as const;
  await pools.assign('org_a', 'x');
  const woken = bells[0].wait();
  await queueRuns(1);
  await woken;
  const moved = bells[1].wait();
  await pools.assign('org_a', 'y');
  await moved;
  for (const each of bells) each.close();
});

test('nothing of its pool is left of an organization that is purged', async () => {
  await pools.assign('org_a', 'x');
  await accept(3);
  await queueRuns(1);
  await new RedisMessagePurger({ redis: world.redis.client, prefix }).purgeOrganization('org_a', new AbortController().signal);
  expect(await keys('*@x')).toEqual([]);
  expect(await keys('pools')).toEqual([]);
  expect(await keys('o:*')).toEqual([]);
  expect(await world.redis.client.keys('*{cron}:*@x')).toEqual([]);
  expect(await world.redis.client.keys('*}:pools')).toEqual([]);
});
