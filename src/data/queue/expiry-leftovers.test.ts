import { describe, expect, test } from '@jest/globals';
import { expireMessages } from '../../../test/support/expire-messages.ts';
import { messageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { delivered, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { checkShards } from '../check/shard-check.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { TargetSetting } from './delivery-queue.ts';

const prefix = 'test:';
const base = `${prefix}{s0}:`;
const dayMs = 86_400_000;

const suite = messageQueueSuite(prefix);

async function accept(): Promise<string> {
  const event = newEvent();
  const targets = event.targets.map((target) => ({ ...target, expiresAtMs: Date.now() + dayMs }));
  await suite.acceptor.accept({ ...event, targets });
  return targets[0]?.messageId ?? '';
}
async function configure(setting: Partial<TargetSetting>): Promise<void> {
  for (const target of (await suite.queue.targets(0)).targets)
    await suite.queue.configure(target, targetSetting({ revision: '2', ...setting }));
}
const messageKey = (id: string): string => `${base}m:${id.slice(6)}`;

/** Its message has expired, and its entry in the lane is still there, as where a worker of the release before has queued it beside very many others. */
async function leftover(): Promise<string> {
  const id = await accept();
  await suite.redis.client.hset(messageKey(id), hashFields.message.laneEntry, '');
  await expireMessages(suite.redis.client, base);
  await suite.queue.promote();
  expect(await suite.redis.client.xlen(`${base}w:1`)).toBe(1);
  return id;
}

const readers: Record<string, () => Promise<unknown>> = {
  'a worker that takes work': () => takeFrom(suite.queue, 'w1', 64),
  'the end of the wait for an open circuit, or of a pause': async () => {
    await configure({ paused: true });
    const began = Date.now() - 8 * dayMs;
    await suite.redis.client.hset(`${base}t:1`, hashFields.target.pausedSinceMs, began);
    for (const key of await suite.redis.client.keys(`${base}m:*`))
      await suite.redis.client.hset(key, hashFields.message.indexStamp, `${began}-1`);
    await suite.queue.expirePaused(7 * dayMs);
  },
  'the deletion of its destination': async () => {
    const failover = [{ id: 'dst_b', shard: 0 }];
    for (const target of (await suite.queue.targets(0)).targets)
      await suite.queue.drop({ target, reason: 'destination_not_found', failover });
  },
  'a move to a failover destination': async () => {
    await configure({ movesOn: 'all', failover: { destinations: [{ id: 'dst_b', shard: 0 }], afterAttempts: null } });
    await takeFrom(suite.queue, 'w1', 64);
  },
  'a batch that is formed': () => takeFrom(suite.queue, 'w1', 64, { batch: { layout: '{}', records: 1, bytes: 1000, ageMs: 1000 } }),
};

describe('an entry that is left of a message that has expired', () => {
  test.each(Object.entries(readers))(
    'an entry that is left of a message that has expired is dropped by %s, and the message stays as it is',
    async (_, read) => {
      const id = await leftover();
      await read();
      expect(await suite.redis.client.exists(`${base}w:1`, `${base}w:2`)).toBe(0);
      expect(await suite.reader.delivery('org_a', id)).toMatchObject({
        status: 'dlq',
        deadLetterReason: 'expired',
        destinationId: 'dst_a',
      });
      expect(await suite.redis.client.xlen(`${base}dead`)).toBe(1);
      expect(await checkShards({ redis: suite.redis.client, prefix })).toMatchObject({ findings: [], unfinished: 0 });
    },
  );

  test('an entry that is left of a message that has expired is dropped when it is among what is due', async () => {
    const id = await accept();
    await settleAll(suite.queue, 'w1', await takeFrom(suite.queue, 'w1', 1), { type: 'retry', attempt: failure, delayMs: 60_000 });
    await expireMessages(suite.redis.client, base);
    await suite.queue.promote();
    await suite.redis.client.zadd(`${base}due`, 1, `1 ${id.slice(6)}`);
    await suite.queue.promote();
    expect(await suite.redis.client.exists(`${base}w:1`, `${base}w:1r`, `${base}due`)).toBe(0);
    expect(await suite.reader.delivery('org_a', id)).toMatchObject({ status: 'dlq', deadLetterReason: 'expired' });
  });
});

test('a message whose entry changes its lane notes the new one', async () => {
  const id = await accept();
  const noted = async () => (await suite.redis.client.hget(messageKey(id), hashFields.message.laneEntry))?.split('/')[0];
  expect(await noted()).toBe('1');
  await settleAll(suite.queue, 'w1', await takeFrom(suite.queue, 'w1', 1), { type: 'retry', attempt: failure, delayMs: 60_000 });
  await configure({ movesOn: 'all' });
  for (let next: string | null = '0'; next !== null; )
    ({ next } = await suite.queue.endWaits((await suite.queue.targets(0)).targets, next));
  expect(await noted()).toBe('1r');
  await configure({ revision: '3' });
  const jobs = await takeFrom(suite.queue, 'w1', 1);
  await settleAll(suite.queue, 'w1', jobs, { type: 'back' });
  expect(await noted()).toBe('1r');
  await settleAll(suite.queue, 'w1', await takeFrom(suite.queue, 'w1', 1), delivered);
  expect(await suite.redis.client.hexists(messageKey(id), hashFields.message.laneEntry)).toBe(0);
  expect(await suite.redis.client.exists(`${base}exp`)).toBe(0);
});
