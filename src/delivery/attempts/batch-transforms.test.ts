import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import type { TransformRecord } from '../../core/records.ts';
import type { Batch, Job } from '../../data/queue/delivery-queue.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import type { NewEvent } from '../../data/shard/messages.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { runBatchTransforms, TransformsStalledError } from './batch-transforms.ts';
import { EventTransformer } from './transformed-event.ts';

const prefix = 'test:';
const batchSetting = { layout: '{}', records: 1000, bytes: 5_242_880, ageMs: 0 };

let redis: RedisServer;
let queue: RedisDeliveryQueue;
let sandbox: Sandbox;

beforeAll(async () => {
  redis = await startRedis();
  queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  await queue.refreshShard('w1', 64);
  sandbox = new Sandbox({ clock: systemClock, processes: 2 });
});
afterEach(() => sandbox.close());

const transform = (code: string, type: TransformRecord['type'] = 'javascript'): TransformRecord => ({
  v: 1,
  id: 'trf_a',
  org: 'org_a',
  type,
  code,
  generation: 1,
});
async function batchOf(count: number, changes: (i: number) => Partial<NewEvent> = () => ({})): Promise<{ job: Job; batch: Batch }> {
  const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  await Promise.all(Array.from({ length: count }, (_, i) => acceptor.accept(newEvent(changes(i)))));
  const [job] = await takeFrom(queue, 'w1', 1, { batch: batchSetting });
  if (job === undefined) throw new Error('there is no batch');
  return { job, batch: await read(job) };
}
async function read(job: Job): Promise<Batch> {
  const batch = await queue.batch(job);
  if (batch === null) throw new Error('there is no batch');
  return batch;
}
/** As another worker would: nothing is known of earlier passes. */
async function run(
  { job, batch }: { job: Job; batch: Batch },
  record: TransformRecord,
  { timeoutMs = 20_000, signal = new AbortController().signal } = {},
) {
  const transformer = new EventTransformer({ sandbox, clock: systemClock });
  return await runBatchTransforms(batch, job, record, { queue, transformer, clock: systemClock, signal, timeoutMs });
}

test('what a pass has found out is known to the next, of any worker', async () => {
  const { job, batch } = await batchOf(22, (i) => ({ payload: Buffer.from(String(i)) }));
  const slow = transform('({ payload }) => { if (payload < 10) throw new Error("no"); while (true) {} }');
  await Promise.all(
    [1, 2].map((i) =>
      sandbox.transform(
        { organization: 'org_b' },
        { type: 'javascript', code: '1' },
        { description: '{}', payload: Buffer.from(String(i)) },
      ),
    ),
  );
  await expect(run({ job, batch }, slow, { timeoutMs: 5500 })).rejects.toThrow('take longer');
  sandbox.close();
  sandbox = new Sandbox({ clock: systemClock, processes: 2 });
  const after = await read(job);
  const unsent = after.members.map(({ isUnsent }) => isUnsent);
  expect(new Set(unsent)).toEqual(new Set([true, false]));
  expect(await run({ job, batch: after }, transform('1'))).toBe(22);
  expect((await read(job)).members.map(({ isUnsent }) => isUnsent)).toEqual(unsent);
});

test('outputs are kept, and no transform runs twice', async () => {
  const { job, batch } = await batchOf(10);
  expect(await run({ job, batch }, transform('Math.random()'))).toBe(10);
  expect(await queue.haveOutputs(job.target, batch.members)).toEqual(batch.members.map(() => true));
  sandbox.close();
  expect(await run({ job, batch: await read(job) }, transform('Math.random()'))).toBe(10);
});

test('a pass ends when the outputs are as much as a batch may have', async () => {
  const { job, batch } = await batchOf(40);
  const ready = await run({ job, batch }, transform("'x'.repeat(1000000)"));
  expect(ready).toBeGreaterThanOrEqual(17);
  expect(ready).toBeLessThan(25);
  const kept = await queue.haveOutputs(job.target, batch.members);
  const { members } = await read(job);
  expect(kept.slice(0, ready ?? 0).every((has, i) => has || members[i]?.isUnsent)).toBe(true);
  expect(kept.filter((has) => !has).length).toBeGreaterThan(10);
});

test('a sandbox that runs nothing stalls the batch at the first failure, and at the deadline', async () => {
  const { job, batch } = await batchOf(100);
  await expect(run({ job, batch }, transform('while (true) {}'), { timeoutMs: 200 })).rejects.toThrow(TransformsStalledError);
  sandbox.close();
  await expect(run({ job, batch }, transform('1'))).rejects.toThrow(TransformsStalledError);
});

test('a worker that stops does not wait for transforms', async () => {
  const { job, batch } = await batchOf(10);
  const stopping = new AbortController();
  const pass = run({ job, batch }, transform('while (true) {}'), { signal: stopping.signal });
  stopping.abort();
  const error = await pass.catch((caught: unknown) => caught);
  expect(error).not.toBeInstanceOf(TransformsStalledError);
  expect(error).toMatchObject({ message: 'the worker stops' });
});

test('a batch that has ended meanwhile is left alone', async () => {
  const { job, batch } = await batchOf(3);
  await settleAll(queue, 'w1', [job], { type: 'dead', attempt: null, reason: 'payload_not_found' });
  expect(await run({ job, batch }, transform('null'))).toBeNull();
});
