import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { newEvent } from '../../test/support/new-event.ts';
import { patientClock } from '../../test/support/patient-clock.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { targetSetting } from '../../test/support/target-setting.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';
import { checkShards } from './shard-check.ts';

const prefix = 'test*:';
const base = `${prefix}{s0}:`;
const attempt = { startedAtMs: 1, durationMs: 5, responseStatus: 200, responseBody: '', errorType: null, errorMessage: null };
let redis: RedisServer;
let queue: RedisDeliveryQueue;
/** Record keys by where their messages are. */
let messages: { queued: string; held: string; due: string; finished: string; dead: string };

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: patientClock });
  await queue.tend('w1', 64);
  const accept = async (): Promise<string> => {
    const event = newEvent();
    await acceptor.accept(event);
    return event.targets[0]?.messageId.slice(6) ?? '';
  };
  const first = await accept();
  for (const target of (await queue.targets(1)).targets) await queue.configure(target, targetSetting());
  const keys = [first, await accept(), await accept(), await accept()];
  const { jobs } = await queue.dequeue('w1', 4);
  const outcomes = [
    { type: 'delivered', attempt },
    { type: 'dead', attempt, reason: 'max_retries_exceeded' },
    { type: 'retry', attempt, delayMs: 60_000 },
  ] as const;
  for (const [i, outcome] of outcomes.entries()) {
    const job = jobs.find(({ messageKey }) => messageKey === keys[i]);
    if (job !== undefined) await queue.settle('w1', [{ job, outcome, maxAttempts: null }]);
  }
  const [finished = '', dead = '', due = '', held = ''] = keys;
  messages = { finished, dead, due, held, queued: await accept() };
});

const check = () => checkShards({ redis: redis.client, prefix });
const complaintOf = async (key: string): Promise<string[]> =>
  (await check()).findings.filter(({ id }) => id.endsWith(key)).map(({ complaint }) => complaint);

test('a shard whose messages are each in one place has no findings', async () => {
  expect(await check()).toEqual({ messages: 5, unfinished: 3, findings: [] });
});

test('an empty shard has no findings', async () => {
  await redis.client.flushall();
  expect(await check()).toEqual({ messages: 0, unfinished: 0, findings: [] });
});

test('a retry that is nowhere is found', async () => {
  await redis.client.del(`${base}due`);
  expect(await complaintOf(messages.due)).toEqual(['has status r and is nowhere']);
});

test('a message in two places is found', async () => {
  await redis.client.zadd(`${base}due`, 1, `1 ${messages.queued}`);
  expect(await complaintOf(messages.queued)).toEqual(['is queued and due']);
});

test('what is read and held by nobody is found', async () => {
  await redis.client.del(`${base}held:w1`);
  expect(await complaintOf(messages.held)).toEqual(['has status a and is read, but held by nobody']);
});

test('a delivered message that stands among the dead letters is found', async () => {
  await redis.client.hset(`${base}m:${messages.dead}`, 's', 'd');
  expect(await complaintOf(messages.dead)).toEqual(['has status d and is dead']);
});

test('an entry without its record is found', async () => {
  await redis.client.del(`${base}m:${messages.queued}`);
  expect(await complaintOf(messages.queued)).toEqual(['is queued, but has no record']);
});

test('a message without its event is found', async () => {
  const event = await redis.client.hget(`${base}m:${messages.queued}`, 'e');
  await redis.client.del(`${base}e:${event}`);
  expect(await complaintOf(event ?? '')).toEqual(['is gone, but has messages']);
});
