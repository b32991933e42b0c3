import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { messageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { attempt, dead, delivered, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { RedisStatisticsReader } from '../analytics/redis-statistics-reader.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { Job, TargetSetting } from './delivery-queue.ts';

const prefix = 'test:';
const limits = { layout: '{}', records: 1000, bytes: 5 * 1024 * 1024, ageMs: 3_600_000 };

const suite = messageQueueSuite(prefix);

type Limits = Partial<TargetSetting['batch']>;
const take = (batch: Limits = {}): Promise<Job[]> => takeFrom(suite.queue, 'w1', 64, { batch: { ...limits, ...batch } });
async function accept(count: number, payload = Buffer.from('{}')): Promise<string[]> {
  const events = Array.from({ length: count }, () => newEvent({ payload }));
  await Promise.all(events.map((event) => suite.acceptor.accept(event)));
  return events.map(({ targets }) => targets[0]?.messageId ?? '');
}
async function endAll(): Promise<void> {
  while ((await suite.queue.endBatches()).hasEndedBatches);
}
const view = async (id: string | undefined) => await suite.reader.delivery('org_a', id ?? '');

test('a batch is complete at 1000 records, and not before; nobody is woken until then', async () => {
  const ids = await accept(999);
  expect(await take()).toEqual([]);
  await suite.redis.client.del(`${prefix}{s0}:bell`);
  const { nextDueMs } = await suite.queue.dequeue('w1', 1);
  expect(nextDueMs).toBeGreaterThan(limits.ageMs - 60_000);
  ids.push(...(await accept(1)));
  expect(await suite.redis.client.llen(`${prefix}{s0}:bell`)).toBe(1);
  const [job] = await take();
  if (job === undefined) throw new Error('there is no batch');
  expect((await suite.queue.batch(job))?.members.map(({ messageId }) => messageId)).toEqual(ids);
  expect(await take()).toEqual([]);
});

test('a batch is complete at 5 MiB', async () => {
  expect(await take()).toEqual([]);
  await accept(4, Buffer.alloc(1024 * 1024));
  expect(await take()).toEqual([]);
  await accept(3, Buffer.alloc(1024 * 1024));
  const [job, ...others] = await take();
  if (job === undefined) throw new Error('there is no batch');
  expect(others).toEqual([]);
  expect((await suite.queue.batch(job))?.members).toHaveLength(4);
});

test('a record of its own size goes alone', async () => {
  await accept(2, Buffer.alloc(1024 * 1024));
  const jobs = await take({ bytes: 900_000 });
  expect(await Promise.all(jobs.map(async (job) => (await suite.queue.batch(job))?.members.length))).toEqual([1, 1]);
});

test('when its oldest record is old enough', async () => {
  await accept(3);
  expect(await take()).toEqual([]);
  expect(await suite.queue.promote()).toMatchObject({ moved: 0 });
  // Old enough from now on: a short age could be over before the first check.
  await suite.redis.client.hset(`${prefix}{s0}:t:1`, hashFields.target.batchAgeMs, -1);
  await suite.redis.client.zadd(`${prefix}{s0}:waiting`, 'XX', 1, '~b1');
  expect(await suite.queue.promote()).toMatchObject({ moved: 1 });
  const [job] = await take();
  if (job === undefined) throw new Error('there is no batch');
  expect((await suite.queue.batch(job))?.members).toHaveLength(3);
});

test('a target has two batches under way at a time', async () => {
  await accept(9);
  expect(await take({ records: 3 })).toHaveLength(2);
});

async function failuresShown(expected: readonly object[]): Promise<void> {
  // The attempts of these tests began in 1970.
  const then = new RedisStatisticsReader({ redis: suite.redis.client, prefix, clock: new FakeClock(1000) });
  const { targets } = await then.ofOrganization('org_a', '1h', { failures: true });
  expect(targets.flatMap(({ failures }) => failures)).toMatchObject(expected);
}

test('members show the attempts of their batch, and keep them when it ends', async () => {
  const [id] = await accept(3);
  const jobs = await take({ records: 3 });
  expect(await view(id)).toMatchObject({ status: 'processing', attempts: 0 });
  const why = { ...failure, errorMessage: 'the store answered 503: please reduce your request rate and try again later' };
  await suite.queue.settle(
    'w1',
    jobs.map((job) => ({ job, outcome: { type: 'retry', attempt: why, delayMs: 0 }, maxAttempts: 11 })),
  );
  expect(await view(id)).toMatchObject({
    status: 'retrying',
    attempts: 1,
    maxAttempts: 11,
    lastErrorMessage: why.errorMessage,
    nextAttemptAtMs: expect.any(Number),
  });
  expect(await suite.reader.attempts('org_a', id ?? '')).toMatchObject([{ attemptNumber: 1, errorMessage: why.errorMessage }]);
  await failuresShown([{ messageId: id, responseStatus: 500, errorMessage: why.errorMessage }]);
  await sleep(2);
  await suite.queue.promote();
  await settleAll(suite.queue, 'w1', await take(), delivered);
  await endAll();
  expect(await view(id)).toMatchObject({ status: 'delivered', attempts: 2, maxAttempts: 11, lastResponseStatus: attempt.responseStatus });
  const { items: retried } = await suite.reader.deliveries('org_a', { statuses: ['delivered'], attemptsMin: 2 }, { limit: 10 });
  expect(retried.map((each) => each.id)).toContain(id);
  expect(retried).toHaveLength(3);
  expect(await suite.reader.attempts('org_a', id ?? '')).toMatchObject([
    { attemptNumber: 1, responseStatus: 500, errorType: 'http_error' },
    { attemptNumber: 2, responseStatus: 200 },
  ]);
  expect(await suite.reader.destinationCounters('org_a', 'dst_a')).toMatchObject({ deliveries: 3, successes: 3, averageLatencyMs: 5 });
  const { total } = await new RedisStatisticsReader({ redis: suite.redis.client, prefix, clock: systemClock }).ofOrganization(
    'org_a',
    '1h',
  );
  expect(total).toMatchObject({ delivered: 3, failed: 0 });
  expect(total.latencies.total).toBe(2);
  await failuresShown([{ messageId: id, responseStatus: 500 }]);
  expect((await suite.queue.figures()).unfinished).toBe(0);
});

test('dead letters of a batch say why, each of them', async () => {
  const ids = await accept(3);
  await settleAll(suite.queue, 'w1', await take({ records: 3 }), dead);
  await endAll();
  for (const id of ids)
    expect(await view(id)).toMatchObject({
      status: 'dlq',
      deadLetterReason: 'max_retries_exceeded',
      lastErrorMessage: failure.errorMessage,
    });
  expect((await suite.queue.figures()).deadLetters).toBe(3);
});

test('members of an ended batch follow in steps, made by any worker', async () => {
  const ids = await accept(1000);
  await settleAll(suite.queue, 'w1', await take(), delivered);
  expect(await suite.queue.endBatches()).toMatchObject({ hasEndedBatches: true });
  expect(await suite.queue.refreshShard('w2', 64)).toMatchObject({ hasEndedBatches: true });
  await endAll();
  expect(await suite.queue.refreshShard('w2', 64)).toMatchObject({ hasEndedBatches: false });
  expect(await view(ids.at(-1))).toMatchObject({ status: 'delivered' });
});

test('a rate of uploads counts batches', async () => {
  await accept(9);
  const throttle = { mode: 'rate', rateLimit: 1, rateUnit: 'hour', maxConcurrency: null, queueLimit: null } as const;
  expect(await takeFrom(suite.queue, 'w1', 64, { batch: { ...limits, records: 3 }, throttle })).toHaveLength(1);
});

test('a purge of the organization leaves nothing of its batches', async () => {
  await accept(9);
  const [first] = await take({ records: 3 });
  await settleAll(suite.queue, 'w1', first === undefined ? [] : [first], { type: 'retry', attempt: failure, delayMs: 60_000 });
  await new RedisMessagePurger({ redis: suite.redis.client, prefix }).purgeOrganization('org_a', new AbortController().signal);
  const left = await suite.redis.client.keys(`${prefix}{s0}:*`);
  expect(left.filter((key) => !/:(ctl|bell|held.*|slow.*)$/.test(key))).toEqual([]);
});
