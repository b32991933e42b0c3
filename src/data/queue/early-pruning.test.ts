import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { dead, settleEverything, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newTimedId } from '../../core/ids.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { checkShards } from '../check/shard-check.ts';
import { recountUnfinished } from '../check/unfinished-check.ts';
import { MessageArchive } from '../history/message-archive.ts';
import { RedisMessageReplayer } from '../history/message-replayer.ts';
import type { NewEvent } from '../shard/messages.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const keys = shardKeys(prefix, 0);
let redis: RedisServer;
let queue: RedisDeliveryQueue;
let acceptor: RedisMessageAcceptor;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  await queue.refreshShard('w1', 64);
});
const accept = async (org: string, { bytes = 1000, destinations = ['dst_a'] } = {}): Promise<NewEvent> => {
  const event = { ...newEvent({ destinations, id: newTimedId('evt_', 0, Date.now()) }), org, payload: Buffer.alloc(bytes, 'x') };
  await acceptor.accept(event);
  return event;
};
const acceptMany = async (org: string, count: number, options?: { bytes?: number; destinations?: string[] }): Promise<NewEvent[]> => {
  const events: NewEvent[] = [];
  for (let i = 0; i < count; i++) events.push(await accept(org, options));
  return events;
};
const early = { finishedMs: 0, deadLettersMs: 86_400_000, largestFirst: true } as const;
const left = async (events: readonly NewEvent[]): Promise<number> =>
  events.length === 0 ? 0 : await redis.client.exists(...events.map(({ id }) => keys.event(id.slice(6))));
const finished = async (): Promise<Record<string, number>> =>
  Object.fromEntries(Object.entries(await redis.client.hgetall(keys.finishedBytes)).map(([account, bytes]) => [account, Number(bytes)]));
const complaints = async () => (await checkShards({ redis: redis.client, prefix })).findings.map(({ complaint }) => complaint);

test('the account with most finished bytes loses its history first, its oldest event first, though that of others is older', async () => {
  const small = await acceptMany('org_small', 30);
  const large = await acceptMany('org_large', 150);
  await settleEverything(queue, 'w1');
  expect(await queue.prune(early)).toMatchObject({ removed: 100, hasMore: true });
  expect([await left(small), await left(large.slice(0, 100)), await left(large.slice(100))]).toEqual([30, 0, 50]);
  expect(await complaints()).toEqual([]);
  await queue.prune(early);
  // Both have about as much now.
  expect(await left(small)).toBeGreaterThan(0);
  while ((await queue.prune(early)).hasMore);
  expect(await left([...small, ...large])).toBe(0);
  expect(await finished()).toEqual({});
});

test('bytes count, not events, and those of webhooks with their organization', async () => {
  const many = await acceptMany('org_many', 60, { bytes: 100 });
  const large = await acceptMany(webhookOrganization('org_large'), 10, { bytes: 50_000 });
  await settleEverything(queue, 'w1');
  expect((await finished())['org_large']).toBeGreaterThan(500_000);
  expect(await queue.prune(early)).toMatchObject({ removed: 10 });
  expect([await left(many), await left(large)]).toEqual([60, 0]);
});

test('waiting messages, and dead letters while memory suffices, are skipped, and those behind them go', async () => {
  const dying = await acceptMany('org_large', 20);
  await settleEverything(queue, 'w1', dead);
  const waiting = await acceptMany('org_large', 120, { destinations: ['dst_paused'] });
  expect(await takeFrom(queue, 'w1', 64, { paused: true })).toEqual([]);
  const ended = await acceptMany('org_large', 5, { destinations: ['dst_b'] });
  const unwanted = await acceptMany('org_large', 5, { destinations: [] });
  await settleEverything(queue, 'w1');
  const small = await acceptMany('org_small', 1);
  await settleEverything(queue, 'w1');
  for (let i = 0; i < 5; i++) await queue.prune(early);
  expect([await left(dying), await left(waiting), await left(ended), await left(unwanted)]).toEqual([20, 120, 0, 0]);
  expect(await complaints()).toEqual([]);
  await redis.client.del(keys.earlyWalks);
  await queue.prune({ ...early, deadLettersMs: 0 });
  expect([await left(dying), await left(waiting)]).toEqual([0, 120]);
  while ((await queue.prune(early)).hasMore);
  expect(await left(small)).toBe(0);
});

test('an archive that has most is pruned first, what it has not written only when it may go', async () => {
  const archive = new MessageArchive({ redis: redis.client, prefix, limits: { records: 10, bytes: 1_000_000, ageMs: 0 } });
  await archive.set('org_kept', 'dst_w');
  const small = await acceptMany('org_small', 30);
  const kept = await acceptMany('org_kept', 60);
  await settleEverything(queue, 'w1');
  while (await archive.gather());
  expect(await queue.prune({ ...early, unwritten: 'goes' })).toMatchObject({ removed: 50, lost: 50 });
  expect([await left(small), await left(kept)]).toEqual([30, 10]);
  expect(await complaints()).toEqual([]);
});

test('finished bytes are counted again after a replay, and a check finds wrong figures, which a recount corrects', async () => {
  const events = await acceptMany('org_a', 3, { destinations: ['dst_a', 'dst_b'] });
  await settleEverything(queue, 'w1');
  const before = await finished();
  const replayer = new RedisMessageReplayer({ redis: redis.client, prefix, clock: lenientClock });
  await replayer.replay('org_a', events[0]?.targets[0]?.messageId ?? '');
  expect((await finished())['org_a']).toBeLessThan(before['org_a'] ?? 0);
  expect(await complaints()).toEqual([]);
  await settleEverything(queue, 'w1');
  expect(await complaints()).toEqual([]);
  const right = await finished();
  await redis.client.hset(keys.finishedBytes, { org_a: '5', org_gone: '7' });
  expect(await complaints()).toEqual(expect.arrayContaining([expect.stringMatching(/finished bytes in shard 0, and 5 are stored$/)]));
  expect(await recountUnfinished({ redis: redis.client, prefix, shards: 1 })).toBeGreaterThan(0);
  expect(await finished()).toEqual(right);
  await redis.client.del(keys.finishedBytes);
  await recountUnfinished({ redis: redis.client, prefix, shards: 1 });
  expect(await finished()).toEqual(right);
});
