import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { eventForShards, newEvent } from '../../../test/support/new-event.ts';
import { dead, delivered, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { OutboxCarrier } from '../queue/outbox-carrier.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import { hashFields } from '../shard/hash-fields.ts';
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
  const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  await queue.refreshShard('w1', 64);
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

test('messages that an outbox still has to have made in another shard are unfinished', async () => {
  await acceptOnly(redis.client, prefix, eventForShards([0, 1, 1]));
  expect(await checkShards({ redis: redis.client, prefix, shards: 2 })).toEqual({ messages: 8, unfinished: 6, findings: [] });
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

test('a delivered message that is among the dead letters is found', async () => {
  await redis.client.hset(`${base}m:${messages.dead}`, hashFields.message.status, 'd');
  expect(await complaintOf(messages.dead)).toEqual(['has status d and is dead']);
});

test('an entry without its record is found', async () => {
  await redis.client.del(`${base}m:${messages.queued}`);
  expect(await complaintOf(messages.queued)).toEqual(['is queued, but has no record']);
});

test('a message without its event is found', async () => {
  const event = await redis.client.hget(`${base}m:${messages.queued}`, hashFields.message.event);
  await redis.client.del(`${base}e:${event}`);
  expect(await complaintOf(event ?? '')).toEqual(['is gone, but has messages']);
});

test.each([
  ['more', '2'],
  ['fewer', '0'],
])('an event that counts %s messages than it has is found', async (_, count) => {
  const event = await redis.client.hget(`${base}m:${messages.queued}`, hashFields.message.event);
  await redis.client.hset(`${base}refs`, event ?? '', count);
  expect(await complaintOf(event ?? '')).toEqual([`counts ${count} messages and has 1`]);
});

describe('a message on its way to another shard', () => {
  const shards = 2;
  const findings = async () => (await checkShards({ redis: redis.client, prefix, shards })).findings;
  const holdsNothing = () => ({ id: eventId, complaint: expect.stringMatching(/^has 0 unfinished parts, and 1 \d+ is stored$/) });
  let eventId: string;
  let id: string;
  let key: string;

  beforeEach(async () => {
    await redis.client.flushall();
    await new RedisDeliveryQueue({ redis: redis.client, prefix, shard: 1 }).refreshShard('w1', 64);
    const event = eventForShards([0]);
    await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock }).accept(event);
    const failover = { destinations: [{ id: 'dst_spare', shard: 1 }], afterAttempts: null };
    await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 1, { failover }), dead);
    eventId = event.id;
    id = event.targets[0]?.messageId ?? '';
    key = id.slice('msg_00'.length);
  });

  test('a message on its way to another shard is no finding, before it has arrived and afterwards', async () => {
    expect(await redis.client.hget(`${base}m:${key}`, hashFields.message.status)).toBe('m');
    expect(await findings()).toEqual([]);
    await new OutboxCarrier({ redis: redis.client, prefix }).carry(0);
    expect(await redis.client.exists(`${prefix}{s1}:m:${id.slice('msg_'.length)}`)).toBe(1);
    expect(await findings()).toEqual([]);
  });

  test('a message on its way to another shard is found when nothing carries it', async () => {
    await redis.client.del(`${base}out`);
    expect(await findings()).toEqual([holdsNothing(), { id, complaint: 'has moved to shard 1 and is not there' }]);
  });

  test('a message on its way to another shard is found when it has arrived and is gone there', async () => {
    await new OutboxCarrier({ redis: redis.client, prefix }).carry(0);
    const there = `${prefix}{s1}:`;
    for (const gone of ['m:', 'e:', 'w:', 'refs', 'ready']) {
      const keys = await redis.client.keys(`${there}${gone}*`);
      if (keys.length > 0) await redis.client.del(keys);
    }
    expect(await findings()).toContainEqual({ id, complaint: 'has moved to shard 1 and is not there' });
  });

  test('a message on its way to another shard is found when it is also one that has ended', async () => {
    await redis.client.hset(`${base}m:${key}`, hashFields.message.status, 'd');
    expect(await findings()).toEqual([{ id, complaint: 'has status d and is moving' }, holdsNothing()]);
  });
});

describe('a batch', () => {
  const batch = { layout: '{}', records: 2, bytes: 1_000_000, ageMs: 3_600_000 };
  /** Keys of the batch and of its first member. */
  let key: string;
  let member: string;

  beforeEach(async () => {
    await redis.client.flushall();
    const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
    for (let i = 0; i < 2; i++) await acceptor.accept(newEvent());
    const jobs = await takeFrom(queue, 'w1', 1, { batch });
    key = jobs[0]?.messageKey ?? '';
    const [first] = jobs[0] === undefined ? [] : ((await queue.batch(jobs[0]))?.members ?? []);
    member = first?.messageKey ?? '';
    expect([key, member]).not.toContain('');
  });

  const end = async () => settleAll(queue, 'w1', await queue.adopt('w1', []), delivered);

  test('a batch that is written is no finding, nor when it has ended and its members have not, nor afterwards', async () => {
    expect(await check()).toEqual({ messages: 2, unfinished: 2, findings: [] });
    await end();
    expect(await check()).toEqual({ messages: 2, unfinished: 2, findings: [] });
    while ((await queue.endBatches()).hasEndedBatches);
    expect(await check()).toEqual({ messages: 2, unfinished: 0, findings: [] });
  });

  test('a batch whose member is also queued is found', async () => {
    await redis.client.xgroup('CREATE', `${base}w:1`, 'g', '0', 'MKSTREAM');
    await redis.client.xadd(`${base}w:1`, '1000-1', hashFields.entry.message, member);
    await redis.client.zadd(`${base}ready:org_a`, 1, '1');
    await redis.client.zadd(`${base}ready`, 1, 'org_a');
    expect(await complaintOf(member)).toEqual(['is queued and in a batch']);
  });

  test('a batch that has lost a member is found', async () => {
    const text = (await redis.client.get(`${base}b:${key}`)) ?? '';
    await redis.client.set(`${base}b:${key}`, text.replace(member, 'another'));
    expect(await complaintOf(member)).toEqual(['has status p and is nowhere']);
  });

  test('a batch whose member has ended before it is found', async () => {
    await redis.client.hset(`${base}m:${member}`, hashFields.message.status, 'd');
    expect(await complaintOf(member)).toEqual(['has status d and is in a batch']);
  });

  test('a batch that has ended and that nobody ends is found', async () => {
    await end();
    await redis.client.del(`${base}ended`);
    expect(await complaintOf(key)).toEqual(['has status e and is nowhere']);
  });

  test('a batch that is to end and has not ended is found', async () => {
    await end();
    await redis.client.hset(`${base}m:${key}`, hashFields.message.status, 'r');
    expect(await complaintOf(key)).toEqual(['has status r and is ended']);
  });
});
