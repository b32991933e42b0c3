import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { allPages } from '../../../test/support/all-pages.ts';
import { type CrashMoment, crashAtEveryCommand } from '../../../test/support/crashing-client.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { dead, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newWebhookEvent } from '../../../test/support/webhook-messages.ts';
import { newTimedId } from '../../core/ids.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { checkShards } from '../check/shard-check.ts';
import { intakeKeys, unfinishedIntentsKey } from '../intake/intake-keys.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { IntentFinisher } from './intent-finisher.ts';
import { type Intent, MessageIntents } from './message-intents.ts';
import { RedisMessageReader } from './message-reader.ts';
import { RedisMessageReplayer } from './message-replayer.ts';

const prefix = 'test:';
const account = 'org_a';
const org = webhookOrganization(account);
const shards = 2;
const keys = intakeKeys(prefix, account);
const monthlyMessages = 100;
let redis: RedisServer;
let reader: RedisMessageReader;
let queues: RedisDeliveryQueue[];

beforeAll(async () => {
  redis = await startRedis();
  reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => shards });
  queues = [0, 1].map((shard) => new RedisDeliveryQueue({ redis: redis.client, prefix, shard }));
});
afterAll(() => redis.stop());
beforeEach(() => redis.client.flushall());

const replayerOn = (client: RedisClient) => new RedisMessageReplayer({ redis: client, prefix, clock: systemClock, shards: () => shards });
const finish = () => new IntentFinisher({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger }).look();

/** Dead letters by their shards: two in the first and one in the second. */
async function deadLetters(places = [0, 0, 1]): Promise<string[]> {
  await redis.client.flushall();
  for (const queue of queues) await queue.refreshShard('w1', 10_000);
  const event = newWebhookEvent(account, []);
  event.targets = places.map((shard, i) => ({
    messageId: newTimedId('msg_', shard, event.receivedAtMs),
    routeId: `app_${shard}`,
    destinationId: `ep_${i}`,
    shard,
    maxAttempts: 8,
    subscription: { id: `sub_${i}`, transformId: null },
  }));
  await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock }).accept(event);
  let taken = 0;
  await eventually(async () => {
    for (const queue of queues) {
      const jobs = await takeFrom(queue, 'w1', 64);
      await settleAll(queue, 'w1', jobs, dead);
      taken += jobs.length;
    }
    expect(taken).toBe(places.length);
  });
  return event.targets.map(({ messageId }) => messageId);
}

const deliveries = () => allPages((page) => reader.deliveries(org, {}, page), 100);
/** How many there are of what is counted, and how many were counted against the month. */
async function state(): Promise<{ replays: number; archived: number; counted: number; open: number }> {
  const all = await deliveries();
  const [counted = 0] = (await redis.client.hvals(keys.quota)).map(Number);
  return {
    replays: all.filter(({ replayedFrom }) => replayedFrom !== null).length,
    archived: all.filter(({ status }) => status === 'failed').length,
    counted,
    open: await redis.client.hlen(keys.intents),
  };
}

const nothing = { replays: 0, archived: 0, counted: 0, open: 0 };
const operations: [string, (client: RedisClient, ids: string[]) => Promise<unknown>, Awaited<ReturnType<typeof state>>][] = [
  [
    'a replay of many',
    (client, ids) => replayerOn(client).replayMany(org, ids, { monthlyMessages }),
    { ...nothing, replays: 3, counted: 3 },
  ],
  [
    'a replay under a mark',
    (client, ids) => replayerOn(client).replay(org, ids[2] ?? '', { monthlyMessages, mark: 'mark' }),
    { ...nothing, replays: 1, counted: 1 },
  ],
  ['an archiving of many', (client, ids) => replayerOn(client).archiveMany(org, ids), { ...nothing, archived: 3 }],
  ['an archiving of many in one shard', (client, ids) => replayerOn(client).archiveMany(org, ids.slice(0, 2)), { ...nothing, archived: 2 }],
];

describe.each(operations)('%s', (_, work, wanted) => {
  test.each<CrashMoment>(['before', 'after'])(
    'is not begun, or finished by another with an exact count, when the process dies %s any of its commands',
    async (moment) => {
      const ends = new Set<string>();
      const look = async (): Promise<void> => {
        await finish();
        const left = await state();
        ends.add(JSON.stringify(left));
        await finish();
        expect(await state()).toEqual(left);
        expect((await checkShards({ redis: redis.client, prefix, shards })).findings).toEqual([]);
      };
      await crashAtEveryCommand(redis.client, moment, { prepare: () => deadLetters(), work, look });
      expect([nothing, wanted]).toEqual(expect.arrayContaining([...ends].map((each) => JSON.parse(each))));
    },
    180_000,
  );
});

describe('an equal request with the same mark', () => {
  test.each<CrashMoment>(['before', 'after'])(
    'replays once and has the first answer, when the process of the first dies %s any of its commands',
    async (moment) => {
      const work = (client: RedisClient, ids: string[]) => replayerOn(client).replayMany(org, ids, { monthlyMessages, mark: 'mark' });
      let isFinishedFirst = false;
      const look = async (ids: string[]): Promise<void> => {
        isFinishedFirst = !isFinishedFirst;
        if (isFinishedFirst) await finish();
        const answer = await work(redis.client, ids);
        expect(answer.map(({ originalId }) => originalId)).toEqual(ids);
        expect(await work(redis.client, ids)).toEqual(answer);
        const made = (await deliveries()).filter(({ replayedFrom }) => replayedFrom !== null).map(({ id }) => id);
        expect(answer.map(({ newId }) => newId).sort()).toEqual(made.sort());
        expect(await state()).toEqual({ ...nothing, replays: 3, counted: 3 });
      };
      await crashAtEveryCommand(redis.client, moment, { prepare: () => deadLetters(), work, look });
    },
    180_000,
  );

  test('an equal request with the same mark has the first answer also when the messages are archived meanwhile', async () => {
    const ids = await deadLetters();
    const replayer = replayerOn(redis.client);
    const request = { mark: 'mark', check: () => Promise.reject(new Error('asked')) };
    const first = await replayer.replay(org, ids[0] ?? '', { mark: 'mark' });
    await replayer.archiveMany(org, ids);
    expect(await replayer.replay(org, ids[0] ?? '', request)).toBe(first);
  });

  test('an equal request with the same mark replays again after the outcome is forgotten: the oldest of very many, or a day later', async () => {
    const [id = ''] = await deadLetters();
    const replayer = replayerOn(redis.client);
    const first = await replayer.replay(org, id, { mark: 'mark' });
    expect(await redis.client.pttl(keys.outcomes[0])).toBeGreaterThan(86_000_000);
    await redis.client.zadd(keys.outcomes[1], Date.now() - 86_400_001, 'mark');
    expect(await replayer.replay(org, id, { mark: 'mark' })).not.toBe(first);
    await redis.client.zadd(keys.outcomes[1], ...Array.from({ length: 10_000 }, (_, i) => [Date.now() + 1000, `other ${i}`]).flat());
    await replayer.replay(org, id, { mark: 'new' });
    expect(await redis.client.zscore(keys.outcomes[1], 'mark')).toBeNull();
    expect(await redis.client.hexists(keys.outcomes[0], 'mark')).toBe(0);
  });
});

/** Whether the values of a script are of a replay of a single message. */
function isOfOneMessage(values: unknown): boolean {
  return typeof values === 'string' && /^\{"elsewhere":"","messages":\[\{[^{}]*\}\]\}$/.test(values);
}

/** A client that loses the step in which a single message of a shard is replayed. */
function losing(shard: number): RedisClient {
  const { declared } = shardKeys(prefix, shard);
  return new Proxy(redis.client, {
    get(target, name) {
      const member = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        const sent = args.flat();
        const isLost = name === 'call' && sent.includes(declared[0]) && isOfOneMessage(sent.at(-1));
        return isLost ? Promise.reject(new Error('away')) : member.apply(target, args);
      };
    },
  });
}

describe('a shard that', () => {
  test('a shard that is down in the middle causes 503, and the rest is finished later with an exact count', async () => {
    const ids = await deadLetters();
    await expect(replayerOn(losing(1)).replayMany(org, ids, { monthlyMessages })).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(await state()).toMatchObject({ counted: 3, open: 1 });
    await finish();
    expect(await state()).toEqual({ ...nothing, replays: 3, counted: 3 });
  });

  test('a shard with more than fifty of the messages replays them in steps, and the rest is finished later', async () => {
    const ids = await deadLetters(Array.from({ length: 51 }, () => 0));
    await expect(replayerOn(losing(0)).replayMany(org, ids, { monthlyMessages })).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(await state()).toEqual({ ...nothing, replays: 50, counted: 51, open: 1 });
    await finish();
    expect(await state()).toEqual({ ...nothing, replays: 51, counted: 51 });
  });

  test('a shard that is full causes 503, and nothing is begun', async () => {
    const ids = await deadLetters();
    await redis.client.hset(`${prefix}{s1}:ctl`, 'full', '1');
    await expect(replayerOn(redis.client).replayMany(org, ids, { monthlyMessages })).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(await state()).toEqual(nothing);
  });
});

describe('the count of the month', () => {
  test('the count of the month takes all or none, and only what is replayed', async () => {
    const ids = await deadLetters();
    const replayer = replayerOn(redis.client);
    await expect(replayer.replayMany(org, ids, { monthlyMessages: 2 })).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' });
    expect(await state()).toEqual(nothing);
    await redis.client.del(await redis.client.keys(`${prefix}{s1}:e:*`));
    expect(await replayer.replayMany(org, [...ids, 'unknown'], { monthlyMessages: 3 })).toHaveLength(2);
    expect(await state()).toEqual({ ...nothing, replays: 2, counted: 2 });
    await expect(replayer.replay(org, ids[2] ?? '', { monthlyMessages: 3 })).rejects.toMatchObject({ code: 'PAYLOAD_NOT_FOUND' });
    expect((await state()).counted).toBe(2);
  });

  test('the count of the month holds when very many replay at once', async () => {
    const ids = await deadLetters();
    const replays = Array.from({ length: 20 }, () => replayerOn(redis.client).replayMany(org, ids, { monthlyMessages: 10 }));
    const landed = (await Promise.allSettled(replays)).filter(({ status }) => status === 'fulfilled');
    expect(landed).toHaveLength(3);
    expect(await state()).toEqual({ ...nothing, replays: 9, counted: 9 });
  });
});

test('a replay that is repeated after a lost answer, when another process has finished it, counts once', async () => {
  const ids = await deadLetters();
  const intents = new MessageIntents({ redis: redis.client, prefix, clock: systemClock });
  const intent: Intent = { id: 'i', action: 'replay', beganAtMs: 1, isAskedAgain: false, messages: [[0, ids.slice(0, 2)]] };
  await intents.announce(account);
  await intents.begin(account, intent, monthlyMessages);
  await finish();
  expect(await intents.begin(account, intent, monthlyMessages)).toEqual({ outcome: { id: 'i', beganAtMs: 1, done: ids.slice(0, 2) } });
  expect(await state()).toEqual({ ...nothing, replays: 2, counted: 2 });
});

test('a replay beyond a thousand open intents of the organization is refused', async () => {
  const [id = ''] = await deadLetters();
  await redis.client.hset(keys.intents, Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`i${i}`, '2026-01 0 {}'])));
  await expect(replayerOn(redis.client).replay(org, id)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
});

test('an intent that cannot be finished holds up no other, and its organization stays on the list', async () => {
  const ids = await deadLetters();
  await expect(replayerOn(losing(1)).replayMany(org, ids)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  await redis.client.hset(keys.intents, 'broken', '2026-01 0 {}');
  await redis.client.zadd(unfinishedIntentsKey(prefix), Date.now() - 100_000, account);
  await finish();
  expect(await state()).toMatchObject({ replays: 3, open: 1 });
  expect(await redis.client.zcard(unfinishedIntentsKey(prefix))).toBe(1);
  await redis.client.hdel(keys.intents, 'broken');
  await finish();
  expect(await redis.client.zcard(unfinishedIntentsKey(prefix))).toBe(0);
});

test('no intent stays when the organization is purged', async () => {
  const ids = await deadLetters();
  await replayerOn(redis.client).replayMany(org, ids, { mark: 'mark', monthlyMessages });
  await redis.client.hset(keys.intents, 'other', '2026-01 0 {}');
  await new RedisMessagePurger({ redis: redis.client, prefix, shards }).purgeOrganization(account, new AbortController().signal);
  expect(await redis.client.keys(`${prefix}{int*`)).toEqual([]);
});
