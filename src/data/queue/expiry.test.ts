import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { expireMessages } from '../../../test/support/expire-messages.ts';
import { checkedMessageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { dead, delivered, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { RedisStatisticsReader } from '../analytics/redis-statistics-reader.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessageReplayer } from '../history/message-replayer.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { NewEvent } from '../shard/messages.ts';
import type { Job, Outcome, TargetSetting } from './delivery-queue.ts';

const prefix = 'test:';
const base = `${prefix}{s0}:`;
const hourMs = 3_600_000;
const endpoints = webhookOrganization('org_a');
const retry = (delayMs: number): Outcome => ({ type: 'retry', attempt: failure, delayMs });

const suite = checkedMessageQueueSuite(prefix);
type Target = NewEvent['targets'][number];

/** Accepts a message that expires in an hour, unless `changes` overrides it; returns its id. */
async function accept(changes: Partial<Target> = {}, event: Partial<NewEvent> = {}): Promise<string> {
  const made = newEvent(event);
  const [target] = made.targets;
  if (target === undefined) throw new Error('there is no target');
  await suite.acceptor.accept({ ...made, targets: [{ ...target, expiresAtMs: Date.now() + hourMs, ...changes }] });
  return target.messageId;
}
const take = (setting: Partial<TargetSetting> = {}, count = 1): Promise<Job[]> => takeFrom(suite.queue, 'w1', count, setting);
const settle = async (jobs: readonly Job[], outcome: Outcome) => await settleAll(suite.queue, 'w1', jobs, outcome);
const view = async (id: string, org = 'org_a') => await suite.reader.delivery(org, id);
const keyOf = (id: string): string => id.slice(6);
async function configure(setting: Partial<TargetSetting>): Promise<void> {
  for (const target of (await suite.queue.targets(0)).targets)
    await suite.queue.configure(target, targetSetting({ revision: '2', ...setting }));
}
async function promote(): Promise<void> {
  while ((await suite.queue.promote()).nextDueMs === 0);
}
/** Lets the messages expire, and ends them. */
async function expire(...ids: string[]): Promise<void> {
  await expireMessages(suite.redis.client, base, ids.length === 0 ? undefined : ids.map(keyOf));
  await promote();
}

const waits: Record<string, () => Promise<string>> = {
  'for its turn': () => accept(),
  'for its next attempt': async () => {
    const id = await accept();
    await settle(await take(), retry(60_000));
    return id;
  },
  'in the lane of retries': async () => {
    const id = await accept();
    await settle(await take(), retry(0));
    await promote();
    return id;
  },
  'for the time of its first attempt': () => accept({ notBeforeMs: Date.now() + 60_000 }),
  'for an open circuit': async () => {
    await accept({ expiresAtMs: undefined });
    const id = await accept();
    const jobs = await take({ circuit: { failureThreshold: 1, cooldownSeconds: 60, probeSuccessThreshold: 1 } });
    await settle(jobs, dead);
    return id;
  },
  'while its target is paused': async () => {
    const id = await accept();
    await configure({ paused: true, pausedFor: 'destination_disabled' });
    return id;
  },
  'for a lease of its limiter': async () => {
    await accept({ expiresAtMs: undefined });
    const throttle = { ...targetSetting().throttle, mode: 'concurrency' as const, maxConcurrency: 1 };
    const held = await take({ throttle });
    const id = await accept();
    expect(await take()).toEqual([]);
    await settle(held, delivered);
    return id;
  },
  'for a batch to be complete': async () => {
    const id = await accept();
    expect(await take({ batch: { layout: '{}', records: 10, bytes: 1_000_000, ageMs: hourMs } })).toEqual([]);
    return id;
  },
  'after a dead worker has held it': async () => {
    const id = await accept();
    expect(await takeFrom(suite.queue, 'w2', 1)).toHaveLength(1);
    expect(await suite.queue.reclaim(['w2'])).toMatchObject({ requeued: 1 });
    return id;
  },
  'after a worker has given it back': async () => {
    const id = await accept();
    await settle(await take(), { type: 'back' });
    return id;
  },
};

describe('a message that expires', () => {
  test.each(Object.entries(waits))(
    'a message that expires is a dead letter when it waits %s, and is counted nowhere else',
    async (_, make) => {
      const id = await make();
      const before = (await suite.queue.figures()).unfinished;
      expect(await view(id)).toMatchObject({ expiresAtMs: expect.any(Number) });
      await expire(id);
      expect(await view(id)).toMatchObject({
        status: 'dlq',
        deadLetterReason: 'expired',
        expiresAtMs: null,
        waitingFor: null,
        nextAttemptAtMs: null,
      });
      expect((await suite.queue.figures()).unfinished).toBe(before - 1);
      const statistics = new RedisStatisticsReader({ redis: suite.redis.client, prefix, clock: systemClock });
      const { targets } = await statistics.ofOrganization('org_a', '1h');
      expect(targets.reduce((sum, { fresh, retries }) => sum + fresh + retries, 0)).toBe(before - 1);
      for (const key of ['exp', 'due', 'retries', 'scheduled', 'held']) expect(await suite.redis.client.exists(base + key)).toBe(0);
      expect(await suite.redis.client.zscore(`${base}waiting`, '~x')).toBeNull();
      // It is leased no more.
      await configure({});
      expect((await take({}, 64)).map(({ messageId }) => messageId)).not.toContain(id);
    },
  );

  test('a message that expires is ended by its time, which the hints of every script report, and not before', async () => {
    // Long enough for a busy machine to look before.
    const expiresAtMs = Date.now() + 3000;
    const id = await accept({ expiresAtMs });
    await configure({ paused: true });
    const { nextDueMs } = await suite.queue.dequeue('w1', 1);
    expect(nextDueMs).toBeGreaterThan(0);
    expect(nextDueMs).toBeLessThanOrEqual(3000);
    expect(await suite.queue.promote()).toMatchObject({ moved: 0 });
    expect(await view(id)).toMatchObject({ status: 'pending' });
    await sleep(expiresAtMs - Date.now() + 20);
    expect(await suite.queue.promote()).toMatchObject({ moved: 1, nextDueMs: null });
    expect(await view(id)).toMatchObject({ status: 'dlq', deadLetterReason: 'expired' });
  });

  test('rings for an idle worker when it is the first thing to do, even if its target is paused', async () => {
    await accept({ expiresAtMs: undefined });
    await configure({ paused: true });
    await suite.redis.client.del(`${base}bell`);
    await accept({ expiresAtMs: undefined });
    expect(await suite.redis.client.llen(`${base}bell`)).toBe(0);
    await accept();
    expect(await suite.redis.client.llen(`${base}bell`)).toBe(1);
    await suite.redis.client.del(`${base}bell`);
    await accept({ expiresAtMs: Date.now() + 2 * hourMs });
    expect(await suite.redis.client.llen(`${base}bell`)).toBe(0);
  });

  test('a message that expires is not given out after its time, though nobody has ended it yet', async () => {
    const [over, other] = [await accept(), await accept()];
    await expireMessages(suite.redis.client, base, [keyOf(over)]);
    await suite.redis.client.del(`${base}exp`, `${base}waiting`);
    const jobs = await take({}, 64);
    expect(jobs.map(({ messageId }) => messageId)).toEqual([other]);
    expect(await view(over)).toMatchObject({ status: 'pending' });
    expect((await checkShards({ redis: suite.redis.client, prefix })).findings).toEqual([]);
    expect(await suite.queue.promote()).toMatchObject({ moved: 1 });
    expect(await view(over)).toMatchObject({ status: 'dlq', deadLetterReason: 'expired' });
    await settle(jobs, delivered);
    expect((await suite.queue.figures()).unfinished).toBe(0);
  });

  test('a message that expires stays delivered when a worker holds it at its time and delivers it', async () => {
    const id = await accept();
    const jobs = await take();
    await expire();
    expect(await view(id)).toMatchObject({ status: 'processing' });
    await settle(jobs, delivered);
    expect(await view(id)).toMatchObject({ status: 'delivered', expiresAtMs: null });
    await promote();
    expect(await view(id)).toMatchObject({ status: 'delivered' });
    expect(await suite.redis.client.exists(`${base}exp`)).toBe(0);
  });

  const failures: [how: string, outcome: Outcome, attempts: number][] = [
    ['fails and would be tried again', retry(0), 1],
    ['fails for the last time', dead, 1],
    ['gives it back', { type: 'back' }, 0],
  ];
  test.each(failures)('a message that expires ends at once when a worker holds it at its time and %s', async (_, outcome, attempts) => {
    const id = await accept();
    const jobs = await take();
    await expire();
    expect(await settle(jobs, outcome)).toEqual([true]);
    expect(await view(id)).toMatchObject({ status: 'dlq', deadLetterReason: 'expired', attempts });
    // The script is sent again.
    expect(await settle(jobs, outcome)).toEqual([false]);
    expect((await suite.queue.figures()).unfinished).toBe(0);
  });

  test('a message that expires keeps the reason for which a failure allows no further attempt', async () => {
    const id = await accept();
    const jobs = await take();
    await expire();
    await settle(jobs, { type: 'dead', attempt: failure, reason: 'max_retries_exceeded', isRejected: true });
    expect(await view(id)).toMatchObject({ status: 'dlq', deadLetterReason: 'max_retries_exceeded' });
  });

  test('a message that expires ends at once when its next attempt would be after its time, and is tried again when it would be before', async () => {
    const [late, early] = [await accept(), await accept({ expiresAtMs: Date.now() + 3 * hourMs })];
    await settle(await take({}, 2), retry(2 * hourMs));
    expect(await view(late)).toMatchObject({ status: 'dlq', deadLetterReason: 'expired', attempts: 1, lastErrorType: 'http_error' });
    expect(await view(early)).toMatchObject({ status: 'retrying', attempts: 1 });
  });

  test('a message that expires is put back when its worker dies after its time, and then ends', async () => {
    const id = await accept();
    await takeFrom(suite.queue, 'w2', 1);
    await expire();
    expect(await suite.redis.client.exists(`${base}exp`)).toBe(0);
    await suite.queue.reclaim(['w2']);
    await promote();
    expect(await view(id)).toMatchObject({ status: 'dlq', deadLetterReason: 'expired' });
  });

  test('to a webhook endpoint ends with a reason of the closed list and the error type expired', async () => {
    const ids = [await accept({}, { org: endpoints }), await accept({}, { org: endpoints })];
    const counts = async () => await suite.redis.client.hgetall(`${base}ms:${endpoints}`);
    expect(await counts()).toEqual({ p: '2' });
    const jobs = await take();
    await expire();
    await settle(jobs, retry(0));
    for (const id of ids)
      expect(await view(id, endpoints)).toMatchObject({
        status: 'dlq',
        deadLetterReason: 'max_retries_exceeded',
        lastErrorType: 'expired',
        lastErrorMessage: 'the message was not delivered before it expired',
      });
    expect(await counts()).toEqual({ q: '2' });
  });

  test('a message that expires counts for the alerts of its route and is one of the events of its organization, as other dead letters', async () => {
    await accept({ expiresAtMs: undefined });
    await settle(await take({ hasAlerts: true, hasOwnEvents: true }), delivered);
    const [queued, held] = [await accept(), await accept()];
    const jobs = await take();
    await expire();
    await settle(jobs, retry(0));
    const noted = (await suite.redis.client.xrange(`${base}ends`, '-', '+')).map(([, entry]) => {
      const of = Object.fromEntries(Array.from({ length: entry.length / 2 }, (_, i) => [entry[2 * i], entry[2 * i + 1]]));
      const { kind, message, details } = hashFields.ends;
      return [of[kind], of[message], of[details]];
    });
    for (const id of [queued, held]) {
      expect(noted).toContainEqual(['f', keyOf(id), undefined]);
      expect(noted).toContainEqual(['q', keyOf(id), 'expired']);
    }
  });

  test('a message that expires leaves its place in the queue of its destination to another one', async () => {
    const throttle = { ...targetSetting().throttle, mode: 'concurrency' as const, maxConcurrency: 1, queueLimit: 1 };
    await accept({ expiresAtMs: undefined });
    await settle(await take({ throttle }), delivered);
    await configure({ throttle, paused: true });
    const id = await accept();
    expect(await view(await accept())).toMatchObject({ deadLetterReason: 'queue_limit_exceeded' });
    await expire(id);
    expect(await view(await accept())).toMatchObject({ status: 'pending' });
  });

  test('and many others end in steps of at most 100', async () => {
    await accept({ expiresAtMs: undefined });
    await configure({ paused: true });
    for (let k = 0; k < 150; k++) await accept();
    await expireMessages(suite.redis.client, base);
    expect(await suite.queue.promote()).toMatchObject({ moved: 100, nextDueMs: 0 });
    expect(await suite.queue.promote()).toMatchObject({ moved: 50 });
    expect((await suite.queue.figures()).unfinished).toBe(1);
  });

  test('a message that expires is found in its lane, too, where a worker of the release before has queued it, and what it has ended there is not given out', async () => {
    const ids = [await accept(), await accept(), await accept()];
    for (const id of ids) await suite.redis.client.hdel(`${base}m:${keyOf(id)}`, hashFields.message.laneEntry);
    await expire(ids[1] ?? '');
    expect(await suite.redis.client.xlen(`${base}w:1`)).toBe(2);
    await suite.redis.client.hset(`${base}m:${keyOf(ids[0] ?? '')}`, hashFields.message.laneEntry, '');
    await expire(ids[0] ?? '');
    expect(await suite.redis.client.xlen(`${base}w:1`)).toBe(2);
    const jobs = await take({}, 64);
    expect(jobs.map(({ messageId }) => messageId)).toEqual([ids[2]]);
    await settle(jobs, delivered);
    expect((await suite.queue.figures()).unfinished).toBe(0);
  });

  test('a message that expires restores the name that a worker of the release before has deleted, for those before it, too', async () => {
    const first = await accept();
    await suite.redis.client.zrem(`${base}waiting`, '~x');
    await accept({ expiresAtMs: Date.now() + 2 * hourMs });
    expect(await suite.redis.client.zscore(`${base}waiting`, '~x')).toBe(await suite.redis.client.zscore(`${base}exp`, keyOf(first)));
  });

  test('and that was accepted too late is a dead letter at once', async () => {
    const id = await accept({ expiresAtMs: Date.now() - 1 });
    expect(await view(id)).toMatchObject({ status: 'dlq', deadLetterReason: 'expired' });
    expect((await suite.queue.figures()).unfinished).toBe(0);
  });

  test('and is sent again when it has ended does not expire any more', async () => {
    const id = await accept();
    await expire(id);
    const replayer = new RedisMessageReplayer({ redis: suite.redis.client, prefix, clock: systemClock });
    const replay = await replayer.replay('org_a', id);
    expect(await view(replay)).toMatchObject({ status: 'pending', expiresAtMs: null });
    await promote();
    await settle(await take(), delivered);
    expect(await view(replay)).toMatchObject({ status: 'delivered' });
  });

  test('a message that expires leaves nothing behind when it is pruned, and when its organization is purged', async () => {
    await accept();
    const [pruned] = [await accept()];
    await expire(pruned ?? '');
    await suite.queue.prune({ finishedMs: -1000, deadLettersMs: -1000 });
    expect(await suite.redis.client.exists(`${base}m:${keyOf(pruned ?? '')}`)).toBe(0);
    expect(await suite.redis.client.zcard(`${base}exp`)).toBe(1);
    await new RedisMessagePurger({ redis: suite.redis.client, prefix }).purgeOrganization('org_a', new AbortController().signal);
    expect(await suite.redis.client.exists(`${base}exp`)).toBe(0);
    await suite.redis.client.zadd(`${base}waiting`, 'XX', 1, '~x');
    await promote();
    expect(await suite.redis.client.exists(`${base}waiting`)).toBe(0);
  });
});
