import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { type CrashMoment, crashAtEveryCommand } from '../../../test/support/crashing-client.ts';
import { FailoverQueues } from '../../../test/support/failover-queues.ts';
import { eventForShards } from '../../../test/support/new-event.ts';
import { delivered, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { checkShards } from '../check/shard-check.ts';
import type { NewEvent } from '../shard/messages.ts';
import type { DeletedTarget } from './delivery-queue.ts';
import { OutboxCarrier } from './outbox-carrier.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const shards = 2;

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const queueOf = (client: RedisClient, shard: number) => new RedisDeliveryQueue({ redis: client, prefix, shard });

/** One message is queued, one waits for an hour for its next attempt. */
async function prepare(): Promise<NewEvent[]> {
  await redis.client.flushall();
  for (let shard = 0; shard < shards; shard++) await queueOf(redis.client, shard).refreshShard('w1', 1000);
  const events = [eventForShards([0]), eventForShards([0])];
  const [waiting, queued] = events;
  if (waiting === undefined || queued === undefined) throw new Error('there are no events');
  await acceptOnly(redis.client, prefix, waiting);
  const queue = queueOf(redis.client, 0);
  await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 1), { type: 'retry', attempt: failure, delayMs: 3_600_000 });
  await acceptOnly(redis.client, prefix, queued);
  return events;
}

const ways: [how: string, spare: { id: string; shard: number }][] = [
  ['in its shard', { id: 'dst_b', shard: 0 }],
  ['in another shard', { id: 'dst_b', shard: 1 }],
];
type Leave = (client: RedisClient, spare: { id: string; shard: number }) => Promise<void>;

const targetsOfFirst = async (client: RedisClient) =>
  (await queueOf(client, 0).targets(1)).targets.filter(({ destinationId }) => destinationId === 'dst_0');

const leaves: Record<string, Leave> = {
  'does not serve any more': async (client, spare) => {
    const queue = queueOf(client, 0);
    const targets = await targetsOfFirst(client);
    const setting = targetSetting({ revision: '2', movesOn: 'all', failover: { destinations: [spare], afterAttempts: null } });
    for (const target of targets) await queue.configure(target, setting);
    for (let next: string | null = '0'; next !== null; ) ({ next } = await queue.endWaits(targets, next));
    await queue.dequeue('w1', 64);
    await new OutboxCarrier({ redis: client, prefix }).carry(0);
  },
  'is gone': async (client, spare) => {
    const queue = queueOf(client, 0);
    const gone = (await targetsOfFirst(client)).map(
      (target): DeletedTarget => ({ target, reason: 'destination_not_found', failover: [spare] }),
    );
    for (const each of gone) while ((await queue.drop(each)).hasMore);
    for (let next: string | null = '0'; next !== null; ) ({ next } = await queue.dropRetries(gone, next));
    await new OutboxCarrier({ redis: client, prefix }).carry(0);
  },
};

describe.each(Object.entries(leaves))('what a process moves on from a destination that %s', (_, leave) => {
  describe.each(ways)('to one %s', (_, spare) => {
    test.each<CrashMoment>(['before', 'after'])('and dies %s any of its commands is in one place, and arrives once', async (moment) => {
      let deaths = 0;
      await crashAtEveryCommand(redis.client, moment, {
        prepare,
        work: (client) => leave(client, spare),
        look: async (events) => {
          const check = () => checkShards({ redis: redis.client, prefix, shards });
          expect((await check()).findings).toEqual([]);
          await queueOf(redis.client, 0).reclaim(['w1']);
          await leave(redis.client, spare);
          await new OutboxCarrier({ redis: redis.client, prefix }).carry(0);
          const queue = queueOf(redis.client, spare.shard);
          // The answer that had named the target to configure may be lost.
          for (const target of (await queue.targets(1)).targets)
            if (target.destinationId === spare.id) await queue.configure(target, targetSetting());
          const jobs = await takeFrom(queue, 'w2', 64);
          expect(jobs.map(({ messageId }) => messageId).sort()).toEqual(events.map(({ targets }) => targets[0]?.messageId).sort());
          expect(new Set(jobs.map(({ target }) => target.destinationId))).toEqual(new Set(['dst_b']));
          await settleAll(queue, 'w2', jobs, delivered);
          expect(await check()).toMatchObject({ findings: [], unfinished: 0 });
          deaths++;
        },
      });
      expect(deaths).toBeGreaterThan(2);
    });
  });
});

describe('a message that a failover destination in another shard has refused', () => {
  const spare = { id: 'dst_b', shard: 1 };
  const failover = { destinations: [spare], afterAttempts: null };

  /** Its first destination has an open circuit, and so had the failover destination. */
  async function refused(): Promise<FailoverQueues> {
    const queues = new FailoverQueues(redis.client, prefix, shards);
    await queues.begin();
    for (const [destination, shard] of [
      ['dst_a', 0],
      ['dst_b', 1],
    ] as const) {
      await queues.send(destination, shard);
      await settleAll(queues.of(shard), 'w1', await queues.take(shard, shard === 0 ? { failover } : {}), delivered);
      await queues.setCircuit(shard, destination, 'open');
    }
    await queues.send('dst_a', 0);
    await queues.looks(2);
    await queues.setCircuit(1, 'dst_b', 'closed');
    return queues;
  }

  test.each<CrashMoment>(['before', 'after'])(
    'arrives there once, when a process dies %s any of the commands of asking and moving',
    async (moment) => {
      let deaths = 0;
      await crashAtEveryCommand(redis.client, moment, {
        prepare: refused,
        work: (client) => new FailoverQueues(client, prefix, shards).looks(3),
        look: async (queues) => {
          const check = () => checkShards({ redis: redis.client, prefix, shards });
          expect((await check()).findings).toEqual([]);
          for (const shard of [0, 1]) await queues.of(shard).reclaim(['w1']);
          const jobs = await queues.looks(4);
          expect(jobs.map(({ target }) => target.destinationId)).toEqual(['dst_b']);
          await settleAll(queues.of(1), 'w1', jobs, delivered);
          expect(await check()).toMatchObject({ findings: [], unfinished: 0 });
          for (const shard of [0, 1]) expect(await redis.client.xlen(`${queues.base(shard)}out`)).toBe(0);
          deaths++;
        },
      });
      expect(deaths).toBeGreaterThan(5);
    },
  );
});
