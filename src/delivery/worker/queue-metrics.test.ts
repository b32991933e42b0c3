import { beforeEach, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { expireMessages } from '../../../test/support/expire-messages.ts';
import { messageQueueSuite } from '../../../test/support/message-queue-suite.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { RedisMessageCanceller } from '../../data/history/message-canceller.ts';
import { deliveryMetrics } from '../metrics.ts';

const prefix = 'test:';
const hourMs = 3_600_000;
const suite = messageQueueSuite(prefix);
let registry: Registry;

beforeEach(() => {
  registry = new Registry();
  const bytes = () => Promise.resolve({ byAccount: new Map<string, number>(), over: 0 });
  deliveryMetrics(registry, { queues: [suite.queue], now: Date.now, inFlight: () => 0, bytes });
});

async function accept(org: string, times: { notBeforeMs?: number; expiresAtMs?: number } = {}): Promise<string> {
  const event = newEvent({ org });
  await suite.acceptor.accept({ ...event, ...times, targets: event.targets.map((target) => ({ ...target, ...times })) });
  return event.targets[0]?.messageId ?? '';
}
async function samples(metric: string): Promise<string[]> {
  return (await registry.metrics()).split('\n').filter((line) => line.startsWith(metric));
}

test('what is scheduled for later is a state of its own, and neither a retry nor a backlog', async () => {
  await accept('org_a');
  const jobs = await takeFrom(suite.queue, 'w1', 1);
  await settleAll(suite.queue, 'w1', jobs, { type: 'retry', attempt: failure, delayMs: hourMs });
  for (let i = 0; i < 3; i++) await accept('org_a', { notBeforeMs: Date.now() + hourMs });
  expect(await samples('posthorn_queue_messages{')).toEqual([
    'posthorn_queue_messages{state="unfinished"} 4',
    'posthorn_queue_messages{state="retry_waiting"} 1',
    'posthorn_queue_messages{state="scheduled"} 3',
    'posthorn_queue_messages{state="earlier_message"} 0',
    'posthorn_queue_messages{state="processing"} 0',
    'posthorn_queue_messages{state="dead_letter"} 0',
  ]);
  expect(await samples('posthorn_backlog_messages')).toEqual(['posthorn_backlog_messages 0']);
});

test('what waits for an earlier message of an ordered target is a state of its own, unless the target is paused or its circuit is open', async () => {
  const behind = async () => (await samples('posthorn_queue_messages{state="earlier_message"}'))[0]?.split(' ')[1];
  for (let i = 0; i < 4; i++) await accept('org_a');
  const jobs = await takeFrom(suite.queue, 'w1', 10, { inOrder: true });
  expect([jobs.length, await behind()]).toEqual([1, '3']);
  await settleAll(suite.queue, 'w1', jobs, { type: 'retry', attempt: failure, delayMs: hourMs });
  // Meets the target, which waits for the retry from then on.
  expect(await takeFrom(suite.queue, 'w1', 10)).toEqual([]);
  expect(await behind()).toBe('3');
  const [target] = (await suite.queue.targets(0)).targets;
  if (target === undefined) throw new Error('there is no target');
  await suite.queue.configure(target, targetSetting({ revision: '2', inOrder: true, paused: true }));
  expect(await behind()).toBe('0');
  await suite.queue.configure(target, targetSetting({ revision: '3', inOrder: false }));
  expect(await behind()).toBe('0');
});

test('messages that were cancelled and that expired are counted by the kind of their target, also after history was removed early', async () => {
  const canceller = new RedisMessageCanceller({ redis: suite.redis.client, prefix });
  for (const org of ['org_a', 'org_a', '+org_a']) await canceller.cancel(org, [await accept(org)], 'somebody');
  for (const org of ['org_a', '+org_a', '+org_a']) await accept(org, { expiresAtMs: Date.now() + hourMs });
  await expireMessages(suite.redis.client, `${prefix}{s0}:`);
  await suite.queue.promote();
  await suite.queue.prune({ finishedMs: 0, deadLettersMs: hourMs, largestFirst: true });
  // Other data of the walk expires.
  await suite.redis.client.del(`${prefix}{s0}:early`);
  expect(await samples('posthorn_cancelled_messages_total{')).toEqual([
    'posthorn_cancelled_messages_total{target="destination"} 2',
    'posthorn_cancelled_messages_total{target="endpoint"} 1',
  ]);
  expect(await samples('posthorn_expired_messages_total{')).toEqual([
    'posthorn_expired_messages_total{target="destination"} 1',
    'posthorn_expired_messages_total{target="endpoint"} 2',
  ]);
  // Reads do not add up.
  expect(await samples('posthorn_cancelled_messages_total{target="endpoint"}')).toEqual([
    'posthorn_cancelled_messages_total{target="endpoint"} 1',
  ]);
});

test('what is cancelled during its attempt, or expires with it, is counted once', async () => {
  const canceller = new RedisMessageCanceller({ redis: suite.redis.client, prefix });
  const id = await accept('org_a');
  await accept('org_a', { expiresAtMs: Date.now() + hourMs });
  const jobs = await takeFrom(suite.queue, 'w1', 2);
  await canceller.cancel('org_a', [id], 'somebody');
  await canceller.cancel('org_a', [id], 'somebody');
  await settleAll(suite.queue, 'w1', jobs, { type: 'retry', attempt: failure, delayMs: 2 * hourMs });
  expect(await samples('posthorn_cancelled_messages_total{target="destination"}')).toEqual([
    'posthorn_cancelled_messages_total{target="destination"} 1',
  ]);
  expect(await samples('posthorn_expired_messages_total{target="destination"}')).toEqual([
    'posthorn_expired_messages_total{target="destination"} 1',
  ]);
});

test('what a receiver refuses or never takes is neither cancelled nor expired', async () => {
  await accept('org_a');
  const jobs = await takeFrom(suite.queue, 'w1', 1);
  await settleAll(suite.queue, 'w1', jobs, { type: 'dead', attempt: failure, reason: 'max_retries_exceeded' });
  for (const reason of ['cancelled', 'expired'])
    expect(await samples(`posthorn_${reason}_messages_total{`)).toEqual([
      `posthorn_${reason}_messages_total{target="destination"} 0`,
      `posthorn_${reason}_messages_total{target="endpoint"} 0`,
    ]);
});
