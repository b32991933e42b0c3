import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { expireMessages } from '../../../test/support/expire-messages.ts';
import { messageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { attempt, delivered, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import type { ThrottleRecord } from '../../core/records.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { Job, Outcome, Target } from './delivery-queue.ts';

const prefix = 'test:';
const off: ThrottleRecord = { mode: 'off', rateLimit: null, rateUnit: null, maxConcurrency: null, queueLimit: null };

const suite = messageQueueSuite(prefix);

const dequeue = (worker = 'w1', count = 64, throttle: ThrottleRecord = off): Promise<Job[]> =>
  takeFrom(suite.queue, worker, count, { throttle });
const settle = (jobs: Job[], outcome: Outcome, worker = 'w1'): Promise<boolean[]> => settleAll(suite.queue, worker, jobs, outcome);
const status = async (id: string | undefined) => (await suite.reader.delivery('org_a', id ?? ''))?.status;
const keys = async () => (await suite.redis.client.keys(`${prefix}*`)).sort();

describe('accepting', () => {
  test('the same event again stores it once', async () => {
    const event = newEvent();
    await suite.acceptor.accept(event);
    await suite.acceptor.accept(event);
    expect(await dequeue()).toHaveLength(1);
    expect((await suite.reader.events('org_a', {}, { limit: 10 })).items).toHaveLength(1);
  });

  test('an event for several destinations stores its payload once', async () => {
    await suite.acceptor.accept(newEvent({ payload: Buffer.from('canary-payload'), destinations: ['dst_a', 'dst_b', 'dst_c'] }));
    const holders = [];
    for (const key of await keys()) {
      if ((await suite.redis.client.type(key)) === 'string' && (await suite.redis.client.get(key))?.includes('canary-payload') === true)
        holders.push(key);
    }
    expect(holders).toHaveLength(1);
    expect((await dequeue()).map(({ event }) => event?.payload.toString())).toEqual(Array.from({ length: 3 }, () => 'canary-payload'));
  });

  test('any bytes gives the same bytes to the worker and to the reader', async () => {
    const payload = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    const event = newEvent({ payload });
    await suite.acceptor.accept(event);
    const [job] = await dequeue();
    expect(job?.event?.payload.equals(payload)).toBe(true);
    expect((await suite.reader.event('org_a', event.id))?.payload?.equals(payload)).toBe(true);
  });

  test('a filtered route is a delivery that is over, and queues nothing', async () => {
    const event = newEvent({ destinations: [], filteredRoutes: ['rte_f'] });
    await suite.acceptor.accept(event);
    expect(await dequeue()).toEqual([]);
    expect((await suite.reader.event('org_a', event.id))?.status).toBe('filtered');
    expect(await suite.reader.deliveriesOfEvent('org_a', event.id)).toMatchObject([
      { status: 'filtered', routeId: 'rte_f', destinationId: null },
    ]);
  });

  test('accepting is refused when Redis is full, while what is queued is still settled', async () => {
    await suite.acceptor.accept(newEvent());
    const jobs = await dequeue();
    await suite.redis.client.config('SET', 'maxmemory', '1');
    try {
      await expect(suite.acceptor.accept(newEvent())).rejects.toMatchObject({ code: 'UNAVAILABLE' });
      expect(await settle(jobs, delivered)).toEqual([true]);
    } finally {
      await suite.redis.client.config('SET', 'maxmemory', '0');
    }
  });
});

describe('settling', () => {
  test('delivered ends the message with its attempt', async () => {
    const event = newEvent();
    await suite.acceptor.accept(event);
    expect(await settle(await dequeue(), delivered)).toEqual([true]);
    expect(await suite.reader.deliveriesOfEvent('org_a', event.id)).toMatchObject([
      { status: 'delivered', attempts: 1, lastResponseStatus: 200 },
    ]);
    expect((await suite.reader.event('org_a', event.id))?.status).toBe('delivered');
    expect(await suite.reader.attempts('org_a', event.targets[0]?.messageId ?? '')).toMatchObject([
      { attemptNumber: 1, responseStatus: 200 },
    ]);
  });

  test('twice counts once', async () => {
    const event = newEvent();
    await suite.acceptor.accept(event);
    const jobs = await dequeue();
    expect(await settle(jobs, delivered)).toEqual([true]);
    expect(await settle(jobs, { type: 'dead', attempt: failure, reason: 'max_retries_exceeded' })).toEqual([false]);
    expect(await status(event.targets[0]?.messageId)).toBe('delivered');
    expect((await suite.reader.destinationCounters('org_a', 'dst_a')).deliveries).toBe(1);
  });

  test('a retry waits, becomes due, and is given again with its attempts', async () => {
    const event = newEvent();
    await suite.acceptor.accept(event);
    await settle(await dequeue(), { type: 'retry', attempt: failure, delayMs: 60_000 });
    expect(await status(event.targets[0]?.messageId)).toBe('retrying');
    expect(await dequeue()).toEqual([]);
    expect(await suite.queue.promote()).toMatchObject({ moved: 0 });
    const due = `${prefix}{s0}:due`;
    const [member = '', atMs = ''] = await suite.redis.client.zrange(due, '0', '0', 'WITHSCORES');
    const leftMs = Number(atMs) - Date.now();
    expect(leftMs).toBeLessThanOrEqual(60_000);
    expect(leftMs).toBeGreaterThan(30_000);
    await suite.redis.client.zadd(due, 1, member);
    expect(await suite.queue.promote()).toMatchObject({ moved: 1 });
    expect(await dequeue()).toMatchObject([{ messageId: event.targets[0]?.messageId, attempts: 1 }]);
  });

  test('a dead letter keeps its reason', async () => {
    const event = newEvent();
    await suite.acceptor.accept(event);
    await settle(await dequeue(), { type: 'dead', attempt: failure, reason: 'max_retries_exceeded' });
    expect(await suite.reader.deliveriesOfEvent('org_a', event.id)).toMatchObject([
      { status: 'dlq', deadLetterReason: 'max_retries_exceeded' },
    ]);
    expect((await suite.queue.figures()).deadLetters).toBe(1);
  });

  test('back gives the message again without an attempt', async () => {
    await suite.acceptor.accept(newEvent());
    await settle(await dequeue(), { type: 'back' });
    expect(await dequeue()).toMatchObject([{ attempts: 0 }]);
  });

  test('the last message of a target takes its work stream along', async () => {
    await suite.acceptor.accept(newEvent());
    await settle(await dequeue(), delivered);
    expect((await keys()).filter((key) => key.includes('}:w:'))).toEqual([]);
    expect((await suite.queue.figures()).unfinished).toBe(0);
  });
});

describe('a worker that is gone', () => {
  test('a worker that is gone loses what it held to another, as a new entry of the same message', async () => {
    const event = newEvent();
    await suite.acceptor.accept(event);
    const [lost] = await dequeue('w1');
    expect(await suite.queue.reclaim(['w1'])).toMatchObject({ requeued: 1 });
    const [found] = await dequeue('w2');
    expect(found?.messageId).toBe(lost?.messageId);
    expect(found?.handle).not.toBe(lost?.handle);
  });

  test('settles nothing when it wakes', async () => {
    const event = newEvent();
    await suite.acceptor.accept(event);
    const lost = await dequeue('w1');
    await suite.queue.reclaim(['w1']);
    const found = await dequeue('w2');
    expect(await settle(lost, delivered, 'w1')).toEqual([false]);
    expect(await status(event.targets[0]?.messageId)).toBe('processing');
    expect(await settle(found, delivered, 'w2')).toEqual([true]);
  });

  test('a worker that is gone takes nothing from one that lives', async () => {
    await suite.acceptor.accept(newEvent());
    await dequeue('w1');
    expect(await suite.queue.reclaim(['w2'])).toMatchObject({ requeued: 0 });
  });
});

test('what a lost reply gave is found again by the worker that holds it', async () => {
  await suite.acceptor.accept(newEvent());
  const [job] = await dequeue('w1');
  expect(await suite.queue.adopt('w1', [job?.handle ?? ''])).toEqual([]);
  expect(await suite.queue.adopt('w1', [])).toMatchObject([{ messageId: job?.messageId, handle: job?.handle }]);
});

describe('fairness', () => {
  test('an organization with a backlog does not keep another waiting', async () => {
    for (let i = 0; i < 100; i++) await suite.acceptor.accept(newEvent({ org: 'org_busy', destinations: ['dst_busy'] }));
    await suite.acceptor.accept(newEvent({ org: 'org_a' }));
    const orgs = (await dequeue('w1', 4)).map(({ target }) => target.org);
    expect([...orgs, ...(await dequeue('w1', 4)).map(({ target }) => target.org)]).toContain('org_a');
  });

  test('a target gets no more than its cap, and continues once it settles', async () => {
    for (let i = 0; i < 30; i++) await suite.acceptor.accept(newEvent());
    const first = await dequeue();
    // 10 % of 64 slots are fewer than 8
    expect(first).toHaveLength(8);
    expect(await dequeue()).toEqual([]);
    await settle(first.slice(0, 3), { type: 'delivered', attempt: { ...attempt, durationMs: 1000 } });
    expect(await dequeue()).toHaveLength(3);
  });
});

describe('throttle', () => {
  test('gives no more than maxConcurrency at a time', async () => {
    const throttle: ThrottleRecord = { ...off, mode: 'concurrency', maxConcurrency: 2 };
    for (let i = 0; i < 5; i++) await suite.acceptor.accept(newEvent());
    const first = await dequeue('w1', 64, throttle);
    expect(first).toHaveLength(2);
    expect(await dequeue('w1', 64, throttle)).toEqual([]);
    await settle(first, delivered);
    expect(await dequeue('w1', 64, throttle)).toHaveLength(2);
  });

  test('never gives more than rate × time + burst, over any time, also after a pause', async () => {
    const throttle: ThrottleRecord = { ...off, mode: 'rate', rateLimit: 20, rateUnit: 'second' };
    for (let i = 0; i < 100; i++) await suite.acceptor.accept(newEvent());
    const takings: { beganAtMs: number; endedAtMs: number; count: number }[] = [];
    const takeUntil = async (most: number): Promise<void> => {
      for (let given = 0; given <= most; ) {
        const beganAtMs = performance.now();
        const jobs = await dequeue('w1', 64, throttle);
        takings.push({ beganAtMs, endedAtMs: performance.now(), count: jobs.length });
        given += jobs.length;
        await settle(jobs, delivered);
        await suite.queue.promote();
        await sleep(5);
      }
    };
    await takeUntil(30);
    const [target] = (await suite.queue.targets(1)).targets;
    if (target === undefined) throw new Error('no target');
    await suite.queue.configure(target, targetSetting({ revision: '2', throttle, paused: true }));
    await suite.queue.configure(target, targetSetting({ revision: '3', throttle }));
    await takeUntil(10);
    await sleep(300);
    await takeUntil(20);
    for (const [first, { beganAtMs }] of takings.entries()) {
      let given = 0;
      for (const { endedAtMs, count } of takings.slice(first)) {
        given += count;
        expect(given).toBeLessThanOrEqual((20 * (endedAtMs - beganAtMs)) / 1000 + 20);
      }
    }
  });
});

describe('a target', () => {
  const targetOf = async (): Promise<Target> => {
    const [target] = (await suite.queue.targets(0)).targets;
    if (target === undefined) throw new Error('no target');
    return target;
  };

  test('a target that is paused keeps its messages until it continues', async () => {
    await suite.acceptor.accept(newEvent());
    await suite.queue.configure(await targetOf(), targetSetting({ revision: '1', paused: true }));
    expect(await dequeue()).toEqual([]);
    await suite.queue.configure(await targetOf(), targetSetting({ revision: '2', paused: false }));
    expect(await dequeue()).toHaveLength(1);
  });

  test('a target that continues after a pause drains with a ramp', async () => {
    for (let i = 0; i < 20; i++) await suite.acceptor.accept(newEvent());
    const target = await targetOf();
    await suite.queue.configure(target, targetSetting({ revision: '1', paused: true }));
    await suite.queue.configure(target, targetSetting({ revision: '2', paused: false }));
    const beganAtMs = Number(await suite.redis.client.hget(`${prefix}{s0}:t:${target.number}`, hashFields.target.rampBeganMs));
    const given = (await dequeue()).length;
    expect(given).toBeGreaterThanOrEqual(2);
    expect(given).toBeLessThanOrEqual(2 * 2 ** Math.floor((Date.now() - beganAtMs) / 1000));
  });

  test('a target that is dropped sends what is queued and what waits to the dead letters', async () => {
    const [queued, waiting] = [newEvent(), newEvent()];
    await suite.acceptor.accept(waiting);
    await settle(await dequeue(), { type: 'retry', attempt: failure, delayMs: 60_000 });
    await suite.acceptor.accept(queued);
    const target = await targetOf();
    while ((await suite.queue.drop({ target, reason: 'route_deleted', failover: null })).hasMore);
    let cursor: string | null = '0';
    while (cursor !== null) cursor = (await suite.queue.dropRetries([{ target, reason: 'route_deleted', failover: null }], cursor)).next;
    for (const event of [queued, waiting]) {
      expect(await suite.reader.deliveriesOfEvent('org_a', event.id)).toMatchObject([{ status: 'dlq', deadLetterReason: 'route_deleted' }]);
    }
  });

  test('a target that is dropped has been configured once: of what expires at it then nothing is recorded', async () => {
    const event = newEvent();
    const expiresAtMs = Date.now() + 3_600_000;
    await suite.acceptor.accept({ ...event, targets: event.targets.map((target) => ({ ...target, expiresAtMs })) });
    await settle(await dequeue(), { type: 'retry', attempt: failure, delayMs: 60_000 });
    const target = await targetOf();
    while ((await suite.queue.drop({ target, reason: 'route_deleted', failover: null })).hasMore);
    await expireMessages(suite.redis.client, `${prefix}{s0}:`);
    await suite.queue.promote();
    expect(await suite.reader.deliveriesOfEvent('org_a', event.id)).toMatchObject([{ status: 'dlq', deadLetterReason: 'expired' }]);
    expect(await suite.redis.client.exists(`${prefix}{s0}:ends`)).toBe(0);
  });

  test('a target whose stream is gone is passed over', async () => {
    await suite.acceptor.accept(newEvent());
    const target = await targetOf();
    await suite.redis.client.del(`${prefix}{s0}:w:${target.number}`);
    expect(await dequeue()).toEqual([]);
    await suite.acceptor.accept(newEvent());
    expect(await dequeue()).toHaveLength(1);
  });
});

test('a group that was destroyed is made again, and what was in the stream is given again', async () => {
  await suite.acceptor.accept(newEvent());
  await dequeue();
  await suite.acceptor.accept(newEvent());
  await suite.redis.client.xgroup('DESTROY', `${prefix}{s0}:w:1`, 'g');
  expect(await dequeue()).toHaveLength(2);
});

test('a work stream of a wrong type refuses events for its target only, and stops no other target', async () => {
  await suite.acceptor.accept(newEvent());
  await suite.redis.client.set(`${prefix}{s0}:w:1`, 'not a stream');
  const [broken, sound] = await Promise.allSettled([
    suite.acceptor.accept(newEvent()),
    suite.acceptor.accept(newEvent({ destinations: ['dst_b'] })),
  ]);
  expect(broken).toMatchObject({ status: 'rejected', reason: { message: 'the work stream of target 1 is a string' } });
  expect(sound.status).toBe('fulfilled');
  expect((await dequeue()).map(({ target }) => target.destinationId)).toEqual(['dst_b']);
});

test('after Redis was emptied new events are delivered, and what was held settles nothing', async () => {
  await suite.acceptor.accept(newEvent());
  const lost = await dequeue();
  await suite.redis.client.flushall();
  const event = newEvent();
  await suite.acceptor.accept(event);
  expect(await settle(lost, delivered)).toEqual([false]);
  const found = await dequeue();
  expect(found).toMatchObject([{ messageId: event.targets[0]?.messageId }]);
  expect(await settle(found, delivered)).toEqual([true]);
});

test('a work stream that is made again repeats no entry, whatever the clock does', async () => {
  const handles: string[] = [];
  for (const isClockBack of [false, true, true]) {
    // The newest time that the shard has seen lies ahead of the clock.
    if (isClockBack) await suite.redis.client.hset(`${prefix}{s0}:ctl`, hashFields.control.newestIndexMs, Date.now() + 3_600_000);
    await suite.acceptor.accept(newEvent());
    const jobs = await dequeue();
    for (const old of handles)
      expect(
        await settle(
          jobs.map((job) => ({ ...job, handle: old })),
          delivered,
        ),
      ).toEqual([false]);
    handles.push(...jobs.map(({ handle }) => handle));
    expect(await settle(jobs, delivered)).toEqual([true]);
  }
  expect(new Set(handles).size).toBe(3);
});

describe('retention', () => {
  test('retention takes finished history, and never what is unfinished', async () => {
    const [done, open] = [newEvent(), newEvent({ destinations: ['dst_b'] })];
    await suite.acceptor.accept(done);
    await settle(await dequeue(), delivered);
    await suite.acceptor.accept(open);
    await sleep(5);
    while ((await suite.queue.prune({ finishedMs: 1, deadLettersMs: 1 })).hasMore);
    expect(await suite.reader.event('org_a', done.id)).toBeNull();
    expect(await suite.reader.event('org_a', open.id)).not.toBeNull();
    expect(await dequeue()).toHaveLength(1);
  });

  test('retention takes a hundred records at a time, and says whether there are more', async () => {
    for (let i = 0; i < 110; i++) await suite.acceptor.accept(newEvent({ destinations: [] }));
    await sleep(5);
    expect(await suite.queue.prune({ finishedMs: 1, deadLettersMs: 1 })).toMatchObject({ removed: 100, hasMore: true });
    expect((await suite.reader.events('org_a', {}, { limit: 20 })).items).toHaveLength(10);
    expect(await suite.queue.prune({ finishedMs: 1, deadLettersMs: 1 })).toMatchObject({ removed: 10, hasMore: false });
  });

  test('a purged organization leaves no key, and others keep theirs', async () => {
    for (let i = 0; i < 130; i++)
      await suite.acceptor.accept(newEvent({ filteredRoutes: i % 2 === 0 ? ['rte_f'] : [], destinations: ['dst_a', 'dst_b'] }));
    await settle((await dequeue()).slice(0, 2), delivered);
    await settle((await dequeue()).slice(0, 2), { type: 'retry', attempt: failure, delayMs: 60_000 });
    await suite.acceptor.accept(newEvent({ org: 'org_b', sourceId: 'src_b', destinations: [] }));
    await new RedisMessagePurger({ redis: suite.redis.client, prefix }).purgeOrganization('org_a', new AbortController().signal);
    const left = [];
    for (const key of await keys()) {
      const dump = await suite.redis.client.dumpBuffer(key);
      if (key.includes('org_a') || dump?.includes('org_a') === true) left.push(key);
    }
    expect(left).toEqual([]);
    expect((await suite.reader.events('org_b', {}, { limit: 10 })).items).toHaveLength(1);
    expect((await suite.reader.events('org_a', {}, { limit: 10 })).items).toEqual([]);
  });
});
