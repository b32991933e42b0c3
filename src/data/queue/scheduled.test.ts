import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { FailoverQueues } from '../../../test/support/failover-queues.ts';
import { eventForShards, newEvent } from '../../../test/support/new-event.ts';
import { delivered, failure, settleAll } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { field } from '../../../test/support/redis-fields.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessageReader } from '../history/message-reader.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import type { NewEvent } from '../shard/messages.ts';
import type { Job } from './delivery-queue.ts';

const prefix = 'test:';
const shards = 2;
const hourMs = 3_600_000;

let redis: RedisServer;
let queues: FailoverQueues;
let reader: RedisMessageReader;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  queues = new FailoverQueues(redis.client, prefix, shards);
  reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => shards });
  await queues.begin();
});
afterEach(async () => {
  expect((await checkShards({ redis: redis.client, prefix, shards })).findings).toEqual([]);
});

function scheduled(event: NewEvent, inMs = hourMs): NewEvent {
  const notBeforeMs = Date.now() + inMs;
  return { ...event, notBeforeMs, targets: event.targets.map((target) => ({ ...target, notBeforeMs })) };
}
async function send(event: NewEvent): Promise<string> {
  await acceptOnly(redis.client, prefix, event);
  return event.targets[0]?.messageId ?? '';
}
/** The time of all that waits in the shard has come. */
async function timeHasCome(shard = 0): Promise<void> {
  const due = `${queues.base(shard)}due`;
  for (const member of await redis.client.zrange(due, '0', '-1')) await redis.client.zadd(due, 1, member);
  for (const key of await redis.client.keys(`${queues.base(shard)}m:*`)) {
    if ((await redis.client.hexists(key, field.message.dueMs)) === 1) await redis.client.hset(key, field.message.dueMs, 1);
  }
  await queues.of(shard).promote();
}
const view = (id: string) => reader.delivery('org_a', id);
const idsOf = (jobs: readonly Job[]): string[] => jobs.map(({ messageId }) => messageId);
const counts = async (shard = 0): Promise<string[]> =>
  [
    await redis.client.hvals(`${queues.base(shard)}retries`),
    await redis.client.hvals(`${queues.base(shard)}scheduled`),
    [String(await redis.client.zcard(`${queues.base(shard)}due`))],
  ].flat();

describe('a scheduled message', () => {
  test('is given to no worker before its time, and then to one', async () => {
    const id = await send(scheduled(newEvent()));
    expect(await queues.take(0)).toEqual([]);
    expect(await view(id)).toMatchObject({ status: 'pending', waitingFor: 'scheduled', attempts: 0 });
    expect((await view(id))?.nextAttemptAtMs).toBeGreaterThan(Date.now() + hourMs / 2);
    expect((await queues.of(0).promote()).moved).toBe(0);
    await timeHasCome();
    const jobs = await queues.take(0);
    expect(idsOf(jobs)).toEqual([id]);
    expect(await counts()).toEqual(['0']);
    await settleAll(queues.of(0), 'w1', jobs, delivered);
    expect(await view(id)).toMatchObject({ status: 'delivered', attempts: 1, nextAttemptAtMs: null });
  });

  test('whose time has passed is queued at once', async () => {
    const id = await send(scheduled(newEvent(), -1000));
    expect(idsOf(await queues.take(0))).toEqual([id]);
  });

  test('wakes a worker that would sleep past its time', async () => {
    await queues.take(0);
    await send(scheduled(newEvent(), 60_000));
    const { nextDueMs } = await queues.of(0).dequeue('w1', 1);
    expect(nextDueMs).toBeGreaterThan(0);
    expect(nextDueMs).toBeLessThanOrEqual(60_000);
    expect(await redis.client.llen(`${queues.base(0)}bell`)).toBe(1);
  });

  test('is promoted within its own second', async () => {
    const id = await send(scheduled(newEvent(), 150));
    await eventually('the message to be due', 10_000, async () => {
      await queues.of(0).promote();
      return idsOf(await queues.take(0)).includes(id);
    });
    expect((await view(id))?.createdAtMs).toBeLessThanOrEqual(Date.now() - 150);
  });

  test('is stored once when its event is accepted again', async () => {
    const event = scheduled(newEvent());
    await send(event);
    await send(event);
    expect(await counts()).toEqual(['1', '1', '1']);
  });

  test('takes no place in the queue of its destination, and needs none', async () => {
    const throttle = { ...targetSetting().throttle, mode: 'concurrency' as const, maxConcurrency: 1, queueLimit: 1 };
    await queues.take(0, { throttle });
    await send(newEvent());
    await queues.take(0, { throttle });
    await send(newEvent());
    const id = await send(scheduled(newEvent()));
    expect(await view(id)).toMatchObject({ status: 'pending', waitingFor: 'scheduled' });
  });

  test('is a dead letter when the queue of its destination is full at its time', async () => {
    const throttle = { ...targetSetting().throttle, mode: 'concurrency' as const, maxConcurrency: 1, queueLimit: 2 };
    await send(newEvent());
    await queues.take(0, { throttle });
    const ids = [await send(scheduled(newEvent())), await send(scheduled(newEvent())), await send(scheduled(newEvent()))];
    await timeHasCome();
    const views = await Promise.all(ids.map(view));
    expect(views.map((each) => each?.deadLetterReason).filter((reason) => reason === 'queue_limit_exceeded')).toHaveLength(2);
    expect(await counts()).toEqual(['0']);
  });

  test('is pending in lists and in the figures of its destination', async () => {
    const id = await send(scheduled(newEvent()));
    for (const statuses of [['pending'], ['pending', 'retrying', 'circuit_open']] as const)
      expect((await reader.deliveries('org_a', { statuses }, { limit: 10 })).items.map((each) => each.id)).toEqual([id]);
    expect((await reader.deliveries('org_a', { statuses: ['retrying'] }, { limit: 10 })).items).toEqual([]);
  });

  test('is as old as its time is past', async () => {
    await send(scheduled(newEvent()));
    await timeHasCome();
    const dueMs = Date.now() - 5000;
    for (const key of await redis.client.keys(`${queues.base(0)}m:*`)) await redis.client.hset(key, field.message.dueMs, dueMs);
    expect((await queues.of(0).figures()).oldestUnreadAtMs).toBe(dueMs);
  });

  test('does not hold up what its target gets meanwhile', async () => {
    await send(scheduled(newEvent()));
    const id = await send(newEvent());
    const jobs = await queues.take(0);
    expect(idsOf(jobs)).toEqual([id]);
    await settleAll(queues.of(0), 'w1', jobs, delivered);
  });

  test('beside a retry: each is counted as what it is', async () => {
    const id = await send(newEvent());
    await settleAll(queues.of(0), 'w1', await queues.take(0), { type: 'retry', attempt: failure, delayMs: hourMs });
    await send(scheduled(newEvent()));
    expect(await counts()).toEqual(['2', '1', '2']);
    expect(await view(id)).toMatchObject({ status: 'retrying', waitingFor: 'retry' });
    const due = `${queues.base(0)}due`;
    const [retryMember = ''] = await redis.client.zrange(due, '0', '0');
    await redis.client.zadd(due, Date.now() + 2 * hourMs, retryMember);
    const [scheduledMember = ''] = await redis.client.zrange(due, '0', '0');
    await redis.client.zadd(due, 1, scheduledMember);
    await queues.of(0).promote();
    expect(await counts()).toEqual(['1', '1']);
    await timeHasCome();
    expect(await counts()).toEqual(['0']);
    expect(await queues.take(0)).toHaveLength(2);
  });

  test('waits in the shard of its target when its event was accepted in another', async () => {
    const event = scheduled(eventForShards([0, 1]));
    await acceptOnly(redis.client, prefix, event);
    // A worker of the release before, which knows no times, makes the message at once instead of none.
    const [[, fields = []] = []] = await redis.client.xrange(`${queues.base(0)}out`, '-', '+');
    expect(fields[fields.indexOf('t') + 1]).toMatch(/^\S+ rte_1 dst_1 3$/);
    await queues.carry(0);
    expect(await counts(0)).toEqual(['1', '1', '1']);
    expect(await counts(1)).toEqual(['1', '1', '1']);
    expect(await queues.take(1)).toEqual([]);
    await timeHasCome(1);
    expect(idsOf(await queues.take(1))).toEqual([event.targets[1]?.messageId]);
    expect((await reader.event('org_a', event.id))?.notBeforeMs).toBe(event.notBeforeMs);
  });

  test('is a member of a batch only from its time on', async () => {
    const batch = { layout: 'layout', records: 2, bytes: 1_000_000, ageMs: 60_000 };
    await send(newEvent());
    expect(await queues.take(0, { batch })).toEqual([]);
    const id = await send(scheduled(newEvent()));
    expect(await queues.take(0, { batch })).toEqual([]);
    const due = `${queues.base(0)}due`;
    await redis.client.zadd(due, 1, (await redis.client.zrange(due, '0', '0'))[0] ?? '');
    await queues.of(0).promote();
    const [job] = await queues.take(0, { batch });
    if (job === undefined) throw new Error('there is no batch');
    expect((await queues.of(0).batch(job))?.members.map(({ messageId }) => messageId)).toContain(id);
  });
});

describe.each([
  ['the same shard', 0],
  ['another shard', 1],
])('a scheduled message whose destination is gone, with a failover destination in %s', (_, shard) => {
  test('moves there, and keeps its time', async () => {
    await send(newEvent());
    await settleAll(queues.of(0), 'w1', await queues.take(0), delivered);
    const id = await send(scheduled(newEvent()));
    const [target] = (await queues.of(0).targets(1)).targets;
    if (target === undefined) throw new Error('there is no target');
    const failover = [{ id: 'dst_b', shard }];
    await queues.of(0).drop({ target, reason: 'destination_not_found', failover });
    for (let next: string | null = '0'; next !== null; )
      ({ next } = await queues.of(0).dropRetries([{ target, reason: 'destination_not_found', failover }], next));
    await queues.carry(0);
    expect(await counts(0)).toEqual(shard === 0 ? ['1', '1', '1'] : ['0']);
    expect(await queues.take(shard)).toEqual([]);
    expect(await view(id)).toMatchObject({ status: 'pending', destinationId: 'dst_b', waitingFor: 'scheduled' });
    await timeHasCome(shard);
    expect(idsOf(await queues.take(shard))).toHaveLength(1);
  });
});

test('a scheduled message of a target that moves its messages on waits for its time first', async () => {
  await send(newEvent());
  await settleAll(queues.of(0), 'w1', await queues.take(0), delivered);
  const id = await send(scheduled(newEvent()));
  const failover = { destinations: [{ id: 'dst_b', shard: 0 }], afterAttempts: null };
  await queues.put(0, 'dst_a', { movesOn: 'all', failover });
  expect(await view(id)).toMatchObject({ destinationId: 'dst_a', waitingFor: 'scheduled' });
  expect(await counts()).toEqual(['1', '1', '1']);
  await timeHasCome();
  const jobs = [...(await queues.take(0)), ...(await queues.take(0))];
  expect(idsOf(jobs)).toEqual([id]);
  expect(await view(id)).toMatchObject({ destinationId: 'dst_b' });
});

test('a purge takes scheduled messages with their counts', async () => {
  await send(scheduled(newEvent()));
  await new RedisMessagePurger({ redis: redis.client, prefix, shards }).purgeOrganization('org_a', new AbortController().signal);
  expect(await counts()).toEqual(['0']);
});
