import { describe, expect, test } from '@jest/globals';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { failoverSuite } from '../../../test/support/failover-suite.ts';
import { eventForShards, newEvent } from '../../../test/support/new-event.ts';
import { delivered, failure, settleAll } from '../../../test/support/queue-worker.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { NewEvent } from '../shard/messages.ts';
import type { Job } from './delivery-queue.ts';

const shards = 2;
const hourMs = 3_600_000;

const suite = failoverSuite({ shards });
const { prefix } = suite;

function scheduled(event: NewEvent, inMs = hourMs): NewEvent {
  const notBeforeMs = Date.now() + inMs;
  return { ...event, notBeforeMs, targets: event.targets.map((target) => ({ ...target, notBeforeMs })) };
}
async function send(event: NewEvent): Promise<string> {
  await acceptOnly(suite.redis.client, prefix, event);
  return event.targets[0]?.messageId ?? '';
}
/** The time of all that waits in the shard has come. */
async function timeHasCome(shard = 0): Promise<void> {
  const due = `${suite.queues.base(shard)}due`;
  for (const member of await suite.redis.client.zrange(due, '0', '-1')) await suite.redis.client.zadd(due, 1, member);
  for (const key of await suite.redis.client.keys(`${suite.queues.base(shard)}m:*`)) {
    if ((await suite.redis.client.hexists(key, hashFields.message.dueMs)) === 1)
      await suite.redis.client.hset(key, hashFields.message.dueMs, 1);
  }
  await suite.queues.of(shard).promote();
}
const view = (id: string) => suite.reader.delivery('org_a', id);
const idsOf = (jobs: readonly Job[]): string[] => jobs.map(({ messageId }) => messageId);
const counts = async (shard = 0): Promise<string[]> =>
  [
    await suite.redis.client.hvals(`${suite.queues.base(shard)}retries`),
    await suite.redis.client.hvals(`${suite.queues.base(shard)}scheduled`),
    [String(await suite.redis.client.zcard(`${suite.queues.base(shard)}due`))],
  ].flat();

describe('a scheduled message', () => {
  test('a scheduled message is given to no worker before its time, and then to one', async () => {
    const id = await send(scheduled(newEvent()));
    expect(await suite.queues.take(0)).toEqual([]);
    expect(await view(id)).toMatchObject({ status: 'pending', waitingFor: 'scheduled', attempts: 0 });
    expect((await view(id))?.nextAttemptAtMs).toBeGreaterThan(Date.now() + hourMs / 2);
    expect((await suite.queues.of(0).promote()).moved).toBe(0);
    await timeHasCome();
    const jobs = await suite.queues.take(0);
    expect(idsOf(jobs)).toEqual([id]);
    expect(await counts()).toEqual(['0']);
    await settleAll(suite.queues.of(0), 'w1', jobs, delivered);
    expect(await view(id)).toMatchObject({ status: 'delivered', attempts: 1, nextAttemptAtMs: null });
  });

  test('a scheduled message whose time has passed is queued at once', async () => {
    const id = await send(scheduled(newEvent(), -1000));
    expect(idsOf(await suite.queues.take(0))).toEqual([id]);
  });

  test('wakes a worker that would sleep past its time', async () => {
    await suite.queues.take(0);
    await send(scheduled(newEvent(), 60_000));
    const { nextDueMs } = await suite.queues.of(0).dequeue('w1', 1);
    expect(nextDueMs).toBeGreaterThan(0);
    expect(nextDueMs).toBeLessThanOrEqual(60_000);
    expect(await suite.redis.client.llen(`${suite.queues.base(0)}bell`)).toBe(1);
  });

  test('a scheduled message is promoted within its own second', async () => {
    const event = scheduled(newEvent(), 150);
    const id = await send(event);
    await eventually('the message to be due', 10_000, async () => {
      await suite.queues.of(0).promote();
      return idsOf(await suite.queues.take(0)).includes(id);
    });
    expect(Date.now()).toBeGreaterThanOrEqual(event.notBeforeMs ?? 0);
  });

  test('a scheduled message is stored once when its event is accepted again', async () => {
    const event = scheduled(newEvent());
    await send(event);
    await send(event);
    expect(await counts()).toEqual(['1', '1', '1']);
  });

  test('a scheduled message takes no place in the queue of its destination, and needs none', async () => {
    const throttle = { ...targetSetting().throttle, mode: 'concurrency' as const, maxConcurrency: 1, queueLimit: 1 };
    await suite.queues.take(0, { throttle });
    await send(newEvent());
    await suite.queues.take(0, { throttle });
    await send(newEvent());
    const id = await send(scheduled(newEvent()));
    expect(await view(id)).toMatchObject({ status: 'pending', waitingFor: 'scheduled' });
  });

  test('a scheduled message is a dead letter when the queue of its destination is full at its time', async () => {
    const throttle = { ...targetSetting().throttle, mode: 'concurrency' as const, maxConcurrency: 1, queueLimit: 2 };
    await send(newEvent());
    await suite.queues.take(0, { throttle });
    const ids = [await send(scheduled(newEvent())), await send(scheduled(newEvent())), await send(scheduled(newEvent()))];
    await timeHasCome();
    const views = await Promise.all(ids.map(view));
    expect(views.map((each) => each?.deadLetterReason).filter((reason) => reason === 'queue_limit_exceeded')).toHaveLength(2);
    expect(await counts()).toEqual(['0']);
  });

  test('a scheduled message is pending in lists and in the figures of its destination', async () => {
    const id = await send(scheduled(newEvent()));
    for (const statuses of [['pending'], ['pending', 'retrying', 'circuit_open']] as const)
      expect((await suite.reader.deliveries('org_a', { statuses }, { limit: 10 })).items.map((each) => each.id)).toEqual([id]);
    expect((await suite.reader.deliveries('org_a', { statuses: ['retrying'] }, { limit: 10 })).items).toEqual([]);
  });

  test('a scheduled message is as old as its time is past', async () => {
    await send(scheduled(newEvent()));
    await timeHasCome();
    const dueMs = Date.now() - 5000;
    for (const key of await suite.redis.client.keys(`${suite.queues.base(0)}m:*`))
      await suite.redis.client.hset(key, hashFields.message.dueMs, dueMs);
    expect((await suite.queues.of(0).figures()).oldestUnreadAtMs).toBe(dueMs);
  });

  test('a scheduled message does not hold up what its target gets meanwhile', async () => {
    await send(scheduled(newEvent()));
    const id = await send(newEvent());
    const jobs = await suite.queues.take(0);
    expect(idsOf(jobs)).toEqual([id]);
    await settleAll(suite.queues.of(0), 'w1', jobs, delivered);
  });

  test('beside a retry is counted as what it is, and so is the retry', async () => {
    const id = await send(newEvent());
    await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0), { type: 'retry', attempt: failure, delayMs: hourMs });
    await send(scheduled(newEvent()));
    expect(await counts()).toEqual(['2', '1', '2']);
    expect(await view(id)).toMatchObject({ status: 'retrying', waitingFor: 'retry' });
    const due = `${suite.queues.base(0)}due`;
    const [retryMember = ''] = await suite.redis.client.zrange(due, '0', '0');
    await suite.redis.client.zadd(due, Date.now() + 2 * hourMs, retryMember);
    const [scheduledMember = ''] = await suite.redis.client.zrange(due, '0', '0');
    await suite.redis.client.zadd(due, 1, scheduledMember);
    await suite.queues.of(0).promote();
    expect(await counts()).toEqual(['1', '1']);
    await timeHasCome();
    expect(await counts()).toEqual(['0']);
    expect(await suite.queues.take(0)).toHaveLength(2);
  });

  test('a scheduled message waits in the shard of its target when its event was accepted in another', async () => {
    const event = scheduled(eventForShards([0, 1]));
    await acceptOnly(suite.redis.client, prefix, event);
    // A worker of the previous release, without times, makes the message at once instead of none.
    const [[, fields = []] = []] = await suite.redis.client.xrange(`${suite.queues.base(0)}out`, '-', '+');
    expect(fields[fields.indexOf('t') + 1]).toMatch(/^\S+ rte_1 dst_1 3$/);
    await suite.queues.carry(0);
    expect(await counts(0)).toEqual(['1', '1', '1']);
    expect(await counts(1)).toEqual(['1', '1', '1']);
    expect(await suite.queues.take(1)).toEqual([]);
    await timeHasCome(1);
    expect(idsOf(await suite.queues.take(1))).toEqual([event.targets[1]?.messageId]);
    expect((await suite.reader.event('org_a', event.id))?.notBeforeMs).toBe(event.notBeforeMs);
  });

  test('a scheduled message is a member of a batch only from its time on', async () => {
    const batch = { layout: 'layout', records: 2, bytes: 1_000_000, ageMs: 60_000 };
    await send(newEvent());
    expect(await suite.queues.take(0, { batch })).toEqual([]);
    const id = await send(scheduled(newEvent()));
    expect(await suite.queues.take(0, { batch })).toEqual([]);
    const due = `${suite.queues.base(0)}due`;
    await suite.redis.client.zadd(due, 1, (await suite.redis.client.zrange(due, '0', '0'))[0] ?? '');
    await suite.queues.of(0).promote();
    const [job] = await suite.queues.take(0, { batch });
    if (job === undefined) throw new Error('there is no batch');
    expect((await suite.queues.of(0).batch(job))?.members.map(({ messageId }) => messageId)).toContain(id);
  });
});

describe.each([
  ['the same shard', 0],
  ['another shard', 1],
])('a scheduled message whose destination is gone, with a failover destination in %s', (_, shard) => {
  test('moves there, and keeps its time', async () => {
    await send(newEvent());
    await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0), delivered);
    const id = await send(scheduled(newEvent()));
    const [target] = (await suite.queues.of(0).targets(1)).targets;
    if (target === undefined) throw new Error('there is no target');
    const failover = [{ id: 'dst_b', shard }];
    await suite.queues.of(0).drop({ target, reason: 'destination_not_found', failover });
    for (let next: string | null = '0'; next !== null; )
      ({ next } = await suite.queues.of(0).dropRetries([{ target, reason: 'destination_not_found', failover }], next));
    await suite.queues.carry(0);
    expect(await counts(0)).toEqual(shard === 0 ? ['1', '1', '1'] : ['0']);
    expect(await suite.queues.take(shard)).toEqual([]);
    expect(await view(id)).toMatchObject({ status: 'pending', destinationId: 'dst_b', waitingFor: 'scheduled' });
    await timeHasCome(shard);
    expect(idsOf(await suite.queues.take(shard))).toHaveLength(1);
  });
});

test('a scheduled message of a target that moves its messages on waits for its time first', async () => {
  await send(newEvent());
  await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0), delivered);
  const id = await send(scheduled(newEvent()));
  const failover = { destinations: [{ id: 'dst_b', shard: 0 }], afterAttempts: null };
  await suite.queues.put(0, 'dst_a', { movesOn: 'all', failover });
  expect(await view(id)).toMatchObject({ destinationId: 'dst_a', waitingFor: 'scheduled' });
  expect(await counts()).toEqual(['1', '1', '1']);
  await timeHasCome();
  const jobs = [...(await suite.queues.take(0)), ...(await suite.queues.take(0))];
  expect(idsOf(jobs)).toEqual([id]);
  expect(await view(id)).toMatchObject({ destinationId: 'dst_b' });
});

test('a purge takes scheduled messages with their counts', async () => {
  await send(scheduled(newEvent()));
  await new RedisMessagePurger({ redis: suite.redis.client, prefix, shards }).purgeOrganization('org_a', new AbortController().signal);
  expect(await counts()).toEqual(['0']);
});
