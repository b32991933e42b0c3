import { describe, expect, test } from '@jest/globals';
import { expireMessages } from '../../../test/support/expire-messages.ts';
import { messageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { dead, delivered, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessageCanceller } from '../history/message-canceller.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { Job, Outcome, TargetSetting } from './delivery-queue.ts';

const prefix = 'test:';
const base = `${prefix}{s0}:`;
const retryLater: Outcome = { type: 'retry', attempt: failure, delayMs: 3_600_000 };
const suite = messageQueueSuite(prefix);

/** Accepts so many events; returns the keys of their messages. */
async function accept(count: number): Promise<string[]> {
  const keys: string[] = [];
  for (let i = 0; i < count; i++) {
    const event = newEvent();
    await suite.acceptor.accept(event);
    keys.push(event.targets[0]?.messageId.slice(6) ?? '');
  }
  return keys;
}
const take = (setting: Partial<TargetSetting> = {}): Promise<Job[]> => takeFrom(suite.queue, 'w1', 8, { inOrder: true, ...setting });
const keysOf = (jobs: readonly Job[]): string[] => jobs.map(({ messageKey }) => messageKey);
async function configure(setting: Partial<TargetSetting>): Promise<void> {
  for (const target of (await suite.queue.targets(1)).targets)
    await suite.queue.configure(target, targetSetting({ revision: '2', inOrder: true, ...setting }));
}
const isReady = async (): Promise<boolean> => (await suite.redis.client.zscore(`${base}ready:org_a`, '1')) !== null;

/** Lets what waits for its next attempt be due, as time would. */
async function becomeDue(): Promise<void> {
  for (const member of await suite.redis.client.zrange(`${base}due`, '0', '-1'))
    await suite.redis.client.zadd(`${base}due`, 'XX', 1, member);
}

describe('a target whose messages go out in order', () => {
  test('a target whose messages go out in order gives out the next message only once the one before has ended, however it ends', async () => {
    const keys = await accept(4);
    const ends: Outcome[] = [delivered, dead, { type: 'unsent', status: 'filtered', reason: null, tookMs: 1 }, delivered];
    for (const [i, end] of ends.entries()) {
      const jobs = await take();
      expect(keysOf(jobs)).toEqual([keys[i]]);
      expect(await take()).toEqual([]);
      await settleAll(suite.queue, 'w1', jobs, end);
    }
    expect((await checkShards({ redis: suite.redis.client, prefix })).findings).toEqual([]);
  });

  test('a target whose messages go out in order gives out nothing while a message waits for its retry, and then that one first', async () => {
    const keys = await accept(3);
    await settleAll(suite.queue, 'w1', await take(), retryLater);
    expect(await take()).toEqual([]);
    await suite.queue.promote();
    expect(await take()).toEqual([]);
    await becomeDue();
    await suite.queue.promote();
    for (const key of keys) {
      const jobs = await take();
      expect(keysOf(jobs)).toEqual([key]);
      await settleAll(suite.queue, 'w1', jobs, delivered);
    }
  });

  test('a target whose messages go out in order has no turn while it waits for a retry, whatever is accepted meanwhile', async () => {
    await accept(2);
    await settleAll(suite.queue, 'w1', await take(), retryLater);
    expect(await take()).toEqual([]);
    expect(await isReady()).toBe(false);
    await accept(5);
    expect(await isReady()).toBe(false);
    expect((await suite.queue.promote()).hasReadyWork).toBe(false);
  });

  test.each(['w1', 'a worker of another process'])(
    'a target whose messages go out in order gives what %s gave back before what was accepted later',
    async (worker) => {
      const keys = await accept(2);
      const jobs = await takeFrom(suite.queue, worker, 8, { inOrder: true });
      expect(keysOf(jobs)).toEqual(keys.slice(0, 1));
      if (worker === 'w1') await settleAll(suite.queue, worker, jobs, { type: 'back' });
      else await suite.queue.reclaim([worker]);
      expect(keysOf(await take())).toEqual(keys.slice(0, 1));
    },
  );

  test('a target whose messages go out in order continues within half a minute when a worker of the release before has moved its retry', async () => {
    const [key = ''] = await accept(2);
    await settleAll(suite.queue, 'w1', await take(), retryLater);
    expect(await take()).toEqual([]);
    // As promote of that release does it, which activates no target that is blocked.
    await suite.redis.client.zrem(`${base}due`, `1 ${key}`);
    await suite.redis.client.hdel(`${base}retries`, '1');
    await suite.redis.client.xgroup('CREATE', `${base}w:1r`, 'g', '0', 'MKSTREAM');
    await suite.redis.client.hset(`${base}t:1`, hashFields.target.hasRetryLane, '1');
    await suite.redis.client.xadd(`${base}w:1r`, '1000-1', hashFields.entry.message, key);
    const endsAtMs = Number(await suite.redis.client.zscore(`${base}waiting`, '~o1'));
    expect(endsAtMs - Date.now()).toBeGreaterThan(0);
    expect(endsAtMs - Date.now()).toBeLessThanOrEqual(30_000);
    await suite.redis.client.zadd(`${base}waiting`, 1, '~o1');
    await suite.queue.promote();
    expect(keysOf(await take())).toEqual([key]);
  });

  test('a target whose messages go out in order counts as one message that more workers could deliver', async () => {
    await accept(5);
    expect(await take()).toHaveLength(1);
    expect((await suite.queue.figures()).backlog).toBe(1);
  });

  test('a target whose messages go out in order is not held up by a scheduled message, which goes out in its turn from its time on', async () => {
    const notBeforeMs = Date.now() + 3_600_000;
    const event = newEvent();
    await suite.acceptor.accept({ ...event, notBeforeMs, targets: event.targets.map((target) => ({ ...target, notBeforeMs })) });
    const [key] = await accept(1);
    const jobs = await take();
    expect(keysOf(jobs)).toEqual([key]);
    await settleAll(suite.queue, 'w1', jobs, delivered);
    await becomeDue();
    await suite.queue.promote();
    expect(keysOf(await take())).toEqual([event.targets[0]?.messageId.slice(6)]);
  });

  test.each<[string, (id: string) => Promise<unknown>]>([
    ['is cancelled', (id) => new RedisMessageCanceller({ redis: suite.redis.client, prefix }).cancel('org_a', [id], 'me')],
    [
      'has expired',
      async () => {
        await expireMessages(suite.redis.client, base);
        await suite.queue.promote();
      },
    ],
  ])('a target whose messages go out in order continues at once when the message %s for whose retry it waits', async (_, end) => {
    const expiresAtMs = Date.now() + 7_200_000;
    const event = newEvent();
    const [target] = event.targets;
    await suite.acceptor.accept({ ...event, targets: event.targets.map((each) => ({ ...each, expiresAtMs })) });
    const [next] = await accept(1);
    await settleAll(suite.queue, 'w1', await take(), retryLater);
    expect(await take()).toEqual([]);
    await suite.redis.client.del(`${base}bell`);
    await end(target?.messageId ?? '');
    expect(await isReady()).toBe(true);
    expect(await suite.redis.client.llen(`${base}bell`)).toBe(1);
    expect(keysOf(await take())).toEqual([next]);
    expect((await checkShards({ redis: suite.redis.client, prefix })).findings).toEqual([]);
  });

  test('a target whose messages go out in order moves nothing to a failover destination of its route when its destination is gone', async () => {
    const keys = await accept(2);
    await settleAll(suite.queue, 'w1', await take(), retryLater);
    const failover = [{ id: 'dst_b', shard: 0 }];
    for (const target of (await suite.queue.targets(1)).targets) {
      const gone = { target, reason: 'destination_not_found' as const, failover };
      while ((await suite.queue.drop(gone)).hasMore);
      for (let next: string | null = '0'; next !== null; ) ({ next } = await suite.queue.dropRetries([gone], next));
    }
    for (const key of keys)
      expect(await suite.reader.delivery('org_a', `msg_00${key}`)).toMatchObject({
        status: 'dlq',
        deadLetterReason: 'destination_not_found',
        destinationId: 'dst_a',
      });
  });

  test('a target whose messages go out in order waits for nothing more when its route is gone', async () => {
    await accept(3);
    await settleAll(suite.queue, 'w1', await take(), retryLater);
    expect(await take()).toEqual([]);
    for (const target of (await suite.queue.targets(1)).targets) {
      await suite.queue.drop({ target, reason: 'route_deleted', failover: null });
      await suite.queue.dropRetries([{ target, reason: 'route_deleted', failover: null }], '0');
    }
    expect(await suite.redis.client.exists(`${base}wait:~o1`)).toBe(0);
    expect(await suite.redis.client.zrange(`${base}waiting`, '0', '-1')).toEqual([]);
    expect(await suite.redis.client.hexists(`${base}t:1`, hashFields.target.blockedBy)).toBe(0);
    expect((await checkShards({ redis: suite.redis.client, prefix })).findings).toEqual([]);
  });
});

describe('switching order off', () => {
  test('lets messages go at once that wait for the retry of an earlier one', async () => {
    const keys = await accept(3);
    await settleAll(suite.queue, 'w1', await take(), retryLater);
    expect(await take()).toEqual([]);
    await configure({ inOrder: false });
    expect(keysOf(await take())).toEqual(keys.slice(1));
    expect(await suite.redis.client.zrange(`${base}waiting`, '0', '-1')).toEqual([]);
  });

  test('lets messages go at once that wait for one under way', async () => {
    const keys = await accept(3);
    expect(await take()).toHaveLength(1);
    expect(await take()).toEqual([]);
    await configure({ inOrder: false });
    expect(keysOf(await take())).toEqual(keys.slice(1));
  });

  test('is kept by a setting without it: that of a destination whose record is missing', async () => {
    const keys = await accept(2);
    const jobs = await take();
    await configure({ inOrder: null, paused: true });
    await settleAll(suite.queue, 'w1', jobs, { type: 'back' });
    await configure({ revision: '3' });
    expect(keysOf(await take())).toEqual(keys.slice(0, 1));
  });
});

test('switching order on waits for all that is under way, puts its retries first, and then gives out one at a time', async () => {
  const keys = await accept(5);
  const jobs = await takeFrom(suite.queue, 'w1', 3, { inOrder: false });
  expect(keysOf(jobs)).toEqual(keys.slice(0, 3));
  await configure({});
  expect(await take()).toEqual([]);
  await settleAll(suite.queue, 'w1', jobs.slice(0, 1), delivered);
  expect(await take()).toEqual([]);
  await settleAll(suite.queue, 'w1', jobs.slice(1, 2), retryLater);
  await settleAll(suite.queue, 'w1', jobs.slice(2, 3), { type: 'back' });
  const rest: string[] = [];
  for (let next = await take(); next.length > 0; next = await take()) {
    expect(next).toHaveLength(1);
    rest.push(...keysOf(next));
    await settleAll(suite.queue, 'w1', next, delivered);
    await becomeDue();
    await suite.queue.promote();
  }
  expect(rest).toEqual([keys[2], keys[1], ...keys.slice(3)]);
});

test('what was taken by a setting without order, and is adopted after order was switched on, counts as taken without order', async () => {
  await accept(3);
  expect(await takeFrom(suite.queue, 'w1', 3, { inOrder: false })).toHaveLength(3);
  await configure({});
  const adopted = await suite.queue.adopt('w1', []);
  expect(adopted.map(({ target }) => target.isInOrder)).toEqual([false, false, false]);
});

test('switching order on gives out in the order of acceptance what several workers give back in another order, or held when they died', async () => {
  const expiresAtMs = Date.now() + 7_200_000;
  const keys: string[] = [];
  for (let i = 0; i < 9; i++) {
    const event = newEvent();
    // Those that expire record their position.
    const times = i % 2 === 0 ? {} : { expiresAtMs };
    await suite.acceptor.accept({ ...event, targets: event.targets.map((target) => ({ ...target, ...times })) });
    keys.push(event.targets[0]?.messageId.slice(6) ?? '');
  }
  const held = new Map<string, Job[]>();
  for (const worker of ['w1', 'w2', 'w3']) held.set(worker, await takeFrom(suite.queue, worker, 2, { inOrder: false }));
  expect([...held.values()].map((jobs) => jobs.length)).toEqual([2, 2, 2]);
  await configure({});
  for (const job of held.get('w3')?.toReversed() ?? []) await settleAll(suite.queue, 'w3', [job], { type: 'back' });
  await settleAll(suite.queue, 'w1', held.get('w1')?.toReversed() ?? [], { type: 'back' });
  expect(await take()).toEqual([]);
  await suite.queue.reclaim(['w2']);
  const given: string[] = [];
  for (let next = await take(); next.length > 0; next = await take()) {
    expect(next.map(({ target }) => target.isInOrder)).toEqual([true]);
    given.push(...keysOf(next));
    await settleAll(suite.queue, 'w1', next, delivered);
  }
  expect(given).toEqual(keys);
  expect((await checkShards({ redis: suite.redis.client, prefix })).findings).toEqual([]);
});
