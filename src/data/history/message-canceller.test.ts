import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { FailoverQueues } from '../../../test/support/failover-queues.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { dead, delivered, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { newWebhookEvent } from '../../../test/support/webhook-messages.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { checkShards } from '../check/shard-check.ts';
import type { TargetSetting } from '../queue/delivery-queue.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { RedisMessageCanceller } from './message-canceller.ts';
import { RedisMessageReader } from './message-reader.ts';
import { RedisMessageReplayer } from './message-replayer.ts';

const prefix = 'test:';
const base = `${prefix}{s0}:`;
const retry = (delayMs: number) => ({ type: 'retry' as const, attempt: failure, delayMs });
const hourMs = 3_600_000;

let redis: RedisServer;
let queue: RedisDeliveryQueue;
let acceptor: RedisMessageAcceptor;
let canceller: RedisMessageCanceller;
let reader: RedisMessageReader;
beforeAll(async () => {
  redis = await startRedis();
  const shared = { redis: redis.client, prefix };
  queue = new RedisDeliveryQueue({ ...shared, tallyMs: 0 });
  acceptor = new RedisMessageAcceptor({ ...shared, clock: lenientClock });
  canceller = new RedisMessageCanceller(shared);
  reader = new RedisMessageReader(shared);
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  await queue.refreshShard('w1', 1000);
});

async function accept(count = 1, changes: Parameters<typeof newEvent>[0] = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let k = 0; k < count; k++) {
    const event = newEvent(changes);
    await acceptor.accept(event);
    ids.push(...event.targets.map(({ messageId }) => messageId));
  }
  return ids;
}
const take = (setting: Partial<TargetSetting> = {}) => takeFrom(queue, 'w1', 64, setting);
const cancel = async (...ids: string[]) => [...(await canceller.cancel('org_a', ids, 'ann')).values()];
async function configure(setting: Partial<TargetSetting>): Promise<void> {
  for (const target of (await queue.targets(1)).targets) await queue.configure(target, targetSetting(setting));
}

/** Nothing is unfinished, waits, or is counted as such. */
async function expectEmpty(): Promise<void> {
  expect(await checkShards({ redis: redis.client, prefix })).toMatchObject({ findings: [], unfinished: 0 });
  expect((await queue.figures()).unfinished).toBe(0);
  const left = await redis.client.keys(`${base}*`);
  expect(left.filter((key) => /:(w:|due$|retries$|scheduled$|exp$|ue$|ub$|held)/.test(key))).toEqual([]);
}

/** Where a message may wait, each with what brings it there. */
const waits: Record<string, () => Promise<string>> = {
  'in the lane of fresh messages': async () => (await accept())[0] ?? '',
  'for its next attempt': async () => {
    const [id = ''] = await accept();
    await settleAll(queue, 'w1', await take(), retry(hourMs));
    return id;
  },
  'for its scheduled time': async () => {
    const notBeforeMs = Date.now() + hourMs;
    const event = newEvent();
    const targets = event.targets.map((target) => ({ ...target, notBeforeMs, expiresAtMs: notBeforeMs + hourMs }));
    await acceptor.accept({ ...event, notBeforeMs, targets });
    return targets[0]?.messageId ?? '';
  },
  'in the lane of fresh messages, before it expires': async () => {
    const event = newEvent();
    const targets = event.targets.map((target) => ({ ...target, expiresAtMs: Date.now() + hourMs }));
    await acceptor.accept({ ...event, targets });
    return targets[0]?.messageId ?? '';
  },
  'in the lane of retries': async () => {
    const [id = ''] = await accept();
    await settleAll(queue, 'w1', await take(), retry(0));
    await queue.promote();
    return id;
  },
  'for an open circuit': async () => {
    const [id = ''] = await accept();
    const circuit = { failureThreshold: 1, cooldownSeconds: 3600, probeSuccessThreshold: 1 };
    await settleAll(queue, 'w1', await take({ circuit }), retry(0));
    await queue.promote();
    expect(await take()).toEqual([]);
    expect(await reader.delivery('org_a', id)).toMatchObject({ status: 'circuit_open' });
    return id;
  },
  'for a rate limit': async () => {
    await accept();
    const throttle = { mode: 'rate', rateLimit: 1, rateUnit: 'hour', maxConcurrency: null, queueLimit: null } as const;
    await settleAll(queue, 'w1', await take({ throttle }), delivered);
    const [id = ''] = await accept();
    expect(await take()).toEqual([]);
    expect(await reader.delivery('org_a', id)).toMatchObject({ waitingFor: 'rate_limit' });
    return id;
  },
  'at a disabled target': async () => {
    await settleAll(queue, 'w1', (await accept()).length > 0 ? await take() : [], delivered);
    const [id = ''] = await accept();
    await configure({ paused: true, revision: '2' });
    expect(await reader.delivery('org_a', id)).toMatchObject({ waitingFor: expect.stringMatching(/_disabled$/) });
    return id;
  },
  'for a batch to form': async () => {
    const [id = ''] = await accept();
    expect(await take({ batch: { layout: '{}', records: 10, bytes: 1000, ageMs: hourMs } })).toEqual([]);
    return id;
  },
  'after its worker was killed': async () => {
    const [id = ''] = await accept();
    await take();
    await queue.reclaim(['w1']);
    await queue.refreshShard('w1', 1000);
    return id;
  },
  'as a replay': async () => {
    const [id = ''] = await accept();
    await settleAll(queue, 'w1', await take(), dead);
    return await new RedisMessageReplayer({ redis: redis.client, prefix, clock: systemClock }).replay('org_a', id);
  },
};

describe('a message that waits', () => {
  test.each(Object.keys(waits))(
    '%s is a dead letter once it is cancelled, and leaves nothing behind; sent again the cancel changes nothing',
    async (where) => {
      const id = (await waits[where]?.()) ?? '';
      expect(await cancel(id)).toEqual(['cancelled']);
      const ended = await reader.delivery('org_a', id);
      expect(ended).toMatchObject({
        status: 'dlq',
        deadLetterReason: 'cancelled',
        lastErrorType: 'cancelled',
        cancellation: { by: 'ann' },
      });
      await expectEmpty();
      expect(await cancel(id)).toEqual(['cancelled']);
      expect(await reader.delivery('org_a', id)).toEqual(ended);
      await expectEmpty();
      expect(await take()).toEqual([]);
    },
  );

  test.each(Object.keys(waits))('%s is cancelled though the answer of Redis is lost', async (where) => {
    const id = (await waits[where]?.()) ?? '';
    const losing = new RedisMessageCanceller({ redis: losingAnswers(redis.client), prefix });
    await expect(losing.cancel('org_a', [id], 'ann')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await expectEmpty();
    expect(await cancel(id)).toEqual(['cancelled']);
    expect(await new RedisMessageReplayer({ redis: redis.client, prefix, clock: systemClock }).deadLetterStats('org_a')).toMatchObject({
      byReason: { cancelled: 1 },
    });
    await expectEmpty();
  });
});

/** A connection that breaks once a script has cancelled something. */
function losingAnswers(client: RedisClient): RedisClient {
  return new Proxy(client, {
    get: (of, name) => {
      if (name !== 'call') return Reflect.get(of, name, of);
      return async (...args: [string, ...string[]]) => {
        const reply = await of.call(...args);
        if (Array.isArray(reply) && reply.includes('done')) throw new Error('the connection broke');
        return reply;
      };
    },
  });
}

describe('a message that a worker holds', () => {
  const outcomes = { retry: retry(0), dead, back: { type: 'back' } } as const;
  test.each(Object.keys(outcomes) as (keyof typeof outcomes)[])(
    'a message that a worker holds ends when its attempt does with %s',
    async (how) => {
      const [id = ''] = await accept();
      const jobs = await take();
      expect(await cancel(id, id)).toEqual(['cancelling']);
      expect(await reader.delivery('org_a', id)).toMatchObject({ status: 'processing' });
      expect(await settleAll(queue, 'w1', jobs, outcomes[how])).toEqual([true]);
      expect(await settleAll(queue, 'w1', jobs, outcomes[how])).toEqual([false]);
      expect(await reader.delivery('org_a', id)).toMatchObject({ deadLetterReason: 'cancelled', attempts: how === 'back' ? 0 : 1 });
      expect(await cancel(id)).toEqual(['cancelled']);
      await expectEmpty();
    },
  );

  test('a message that a worker holds stays delivered when its attempt succeeds', async () => {
    const [id = ''] = await accept();
    const jobs = await take();
    expect(await cancel(id)).toEqual(['cancelling']);
    await settleAll(queue, 'w1', jobs, delivered);
    expect(await reader.delivery('org_a', id)).toMatchObject({ status: 'delivered', deadLetterReason: null, lastErrorType: null });
    expect(await cancel(id)).toEqual(['ended']);
    await expectEmpty();
  });

  test('a message that a worker holds does not move to a failover destination', async () => {
    const [id = ''] = await accept();
    const jobs = await take({ failover: { destinations: [{ id: 'dst_b', shard: 0 }], afterAttempts: 1 } });
    await cancel(id);
    await settleAll(queue, 'w1', jobs, retry(0));
    expect(await reader.delivery('org_a', id)).toMatchObject({
      deadLetterReason: 'cancelled',
      destinationId: 'dst_a',
      failedOverFrom: null,
    });
    await expectEmpty();
  });

  test('a message that a worker holds ends when its worker is killed before it settles, and what the dead worker settles then changes nothing', async () => {
    const [id = ''] = await accept();
    const jobs = await take();
    await cancel(id);
    await queue.reclaim(['w1']);
    expect(await reader.delivery('org_a', id)).toMatchObject({ deadLetterReason: 'cancelled', attempts: 0 });
    expect(await settleAll(queue, 'w1', jobs, delivered)).toEqual([false]);
    expect(await reader.delivery('org_a', id)).toMatchObject({ status: 'dlq' });
    await expectEmpty();
  });
});

describe('a batch', () => {
  const batch = { layout: '{}', records: 2, bytes: 1000, ageMs: hourMs };

  test('a batch that forms counts its bytes without what was cancelled', async () => {
    const payload = Buffer.alloc(300, 'a');
    expect(await take({ batch: { ...batch, records: 100 } })).toEqual([]);
    const [, second = ''] = await accept(2, { payload });
    expect(await take({ batch: { ...batch, records: 100 } })).toEqual([]);
    const counted = async () => Number(await redis.client.hget(`${base}t:1`, hashFields.target.batchCountedBytes));
    const before = await counted();
    expect(await cancel(second)).toEqual(['cancelled']);
    // Numbers in the texts of the events may have one digit more.
    expect(Math.abs((await counted()) - before / 2)).toBeLessThan(3);
    await accept(1, { payload });
    expect(await take()).toEqual([]);
    await accept(1, { payload });
    expect(await take()).toHaveLength(1);
  });

  test.each([
    ['under way', 'delivered', delivered, ['delivered', 'delivered']],
    ['under way', 'dead', dead, ['dlq cancelled', 'dlq max_retries_exceeded']],
    ['waiting for its retry', 'delivered', delivered, ['dlq cancelled', 'delivered']],
    ['waiting for its retry', 'dead', dead, ['dlq cancelled', 'dlq max_retries_exceeded']],
  ] as const)('a batch whose member is cancelled while it is %s ends %s', async (when, _, outcome, expected) => {
    const ids = await accept(2);
    let jobs = await take({ batch });
    if (when !== 'under way') {
      await settleAll(queue, 'w1', jobs, retry(0));
      await queue.promote();
    }
    expect(await cancel(ids[0] ?? '')).toEqual(['cancelling']);
    if (when !== 'under way') jobs = await take();
    expect(await cancel(ids[0] ?? '')).toEqual(['cancelling']);
    await settleAll(queue, 'w1', jobs, outcome);
    while ((await queue.endBatches()).hasEndedBatches);
    const views = await Promise.all(ids.map((id) => reader.delivery('org_a', id)));
    expect(views.map((view) => [view?.status, view?.deadLetterReason].filter((each) => each != null).join(' '))).toEqual(expected);
    await expectEmpty();
  });
});

test('a long lane whose entries are anywhere is looked through for all of its messages at once', async () => {
  const ids = await accept(2500);
  const jobs = await takeFrom(queue, 'w1', 8);
  await settleAll(queue, 'w1', jobs, { type: 'back' });
  const n = await redis.client.hget(`${base}tn:org_a`, 'rte_a dst_a');
  // Every entry is replaced by one without its message: the last ones first.
  const entries = (await redis.client.xrange(`${base}w:${n}`, '-', '+')).map(([, [, key = '']]) => key);
  await redis.client.xtrim(`${base}w:${n}`, 'MAXLEN', 0);
  let number = 10_000_000;
  for (const key of entries.toReversed()) await redis.client.xadd(`${base}w:${n}`, `${++number}-1`, hashFields.entry.message, key);
  const some = ids.filter((_, k) => k % 25 === 0);
  expect(new Set(await cancel(...some))).toEqual(new Set(['cancelled']));
  expect(await redis.client.xlen(`${base}w:${n}`)).toBe(2400);
  expect(await checkShards({ redis: redis.client, prefix })).toMatchObject({ findings: [], unfinished: 2400 });
});

test('a message is found though the recorded entry is not its own any more, as after a worker without support for deadlines', async () => {
  const event = newEvent({});
  const [target] = event.targets;
  if (target === undefined) throw new Error('the event has no target');
  await acceptor.accept({ ...event, targets: [{ ...target, expiresAtMs: Date.now() + hourMs }] });
  const n = await redis.client.hget(`${base}tn:org_a`, 'rte_a dst_a');
  const [[entry, fields] = ['', []]] = await redis.client.xrange(`${base}w:${n}`, '-', '+');
  expect(await redis.client.hget(`${base}m:${fields[1]}`, hashFields.message.laneEntry)).toBe(`${n}/${entry}`);
  await redis.client.xdel(`${base}w:${n}`, entry);
  await accept(20);
  await redis.client.xadd(`${base}w:${n}`, '10000000-1', ...fields);
  expect(await cancel(target.messageId)).toEqual(['cancelled']);
});

test('cancels that race with workers leave each message ended once', async () => {
  const ids = await accept(200);
  await take();
  await queue.reclaim(['w1']);
  await queue.refreshShard('w1', 1000);
  const results = new Map<string, string | undefined>();
  const cancels = async (): Promise<void> => {
    for (let k = 0; k < ids.length; k += 5) {
      const some = ids.slice(k, k + 5);
      for (const [id, result] of await canceller.cancel('org_a', some, 'ann')) results.set(id, result);
    }
  };
  const works = async (): Promise<void> => {
    for (let k = 0; k < 60; k++) {
      const jobs = await takeFrom(queue, 'w1', 4);
      await settleAll(queue, 'w1', jobs, k % 2 === 0 ? delivered : retry(0));
      await queue.promote();
    }
  };
  await Promise.all([cancels(), works(), cancels()]);
  for (let jobs = await take(); jobs.length > 0; jobs = await take()) await settleAll(queue, 'w1', jobs, delivered);
  await expectEmpty();
  expect([...new Set(results.values())].sort()).toEqual(expect.arrayContaining(['cancelled']));
  const { byReason } = await new RedisMessageReplayer({ redis: redis.client, prefix, clock: systemClock }).deadLetterStats('org_a');
  const views = await Promise.all(ids.map((id) => reader.delivery('org_a', id)));
  expect(views.every((view) => view?.status === 'delivered' || view?.deadLetterReason === 'cancelled')).toBe(true);
  expect(byReason).toEqual({ cancelled: views.filter((view) => view?.status === 'dlq').length });
});

test('neither alerts nor events of Posthorn itself report cancelled messages', async () => {
  const noted = () => redis.client.xlen(`${base}ends`);
  await accept(3);
  const [first, ...jobs] = await take({ hasAlerts: true, hasOwnEvents: true });
  const [waiting = ''] = await accept();
  await cancel(waiting, ...jobs.map(({ messageId }) => messageId));
  await settleAll(queue, 'w1', jobs, dead);
  expect(await noted()).toBe(0);
  if (first !== undefined) await settleAll(queue, 'w1', [first], dead);
  expect(await noted()).toBe(2);
});

test('the queue of a destination accepts a message again for each one that was cancelled', async () => {
  const throttle = { mode: 'concurrency', rateLimit: null, rateUnit: null, maxConcurrency: 1, queueLimit: 2 } as const;
  await accept();
  await take({ throttle });
  const [first = ''] = await accept();
  const [excess = ''] = await accept();
  expect(await reader.delivery('org_a', excess)).toMatchObject({ deadLetterReason: 'queue_limit_exceeded' });
  expect(await cancel(first)).toEqual(['cancelled']);
  const [next = ''] = await accept();
  expect(await reader.delivery('org_a', next)).toMatchObject({ status: 'pending' });
});

test('a message that has failed over to another shard is cancelled there, and one that is on its way is cancelled once it has arrived', async () => {
  const queues = new FailoverQueues(redis.client, prefix, 2);
  await queues.begin();
  const far = new RedisMessageCanceller({ redis: redis.client, prefix, shards: () => 2 });
  const farReader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => 2 });
  const failover = { destinations: [{ id: 'dst_b', shard: 1 }], afterAttempts: 1 };
  const id = await queues.send('dst_a', 0);
  await settleAll(queues.of(0), 'w1', await queues.take(0, { failover }), retry(0));
  const result = async () => (await far.cancel('org_a', [id], 'ann')).get(id);
  expect(await result()).toBe('moving');
  await queues.carry(0);
  expect(await result()).toBe('cancelled');
  await queues.carry(1);
  expect(await farReader.delivery('org_a', id)).toMatchObject({ deadLetterReason: 'cancelled', destinationId: 'dst_b' });
  expect(await checkShards({ redis: redis.client, prefix, shards: 2 })).toMatchObject({ findings: [], unfinished: 0 });
});

test('a message of another organization is not found, and one of webhooks is counted by its status', async () => {
  const event = newWebhookEvent('org_a', [{ id: 'ep_a', applicationId: 'app_a' }]);
  await acceptor.accept(event);
  const id = event.targets[0]?.messageId ?? '';
  const inside = webhookOrganization('org_a');
  for (const org of ['org_a', 'org_b', webhookOrganization('org_b')])
    expect([...(await canceller.cancel(org, [id], 'ann')).values()]).toEqual(['not_found']);
  expect([...(await canceller.cancel(inside, [id], 'ann')).values()]).toEqual(['cancelled']);
  expect(await redis.client.hgetall(`${base}ms:${inside}`)).toEqual({ q: '1' });
  await expectEmpty();
});
