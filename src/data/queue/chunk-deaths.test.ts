import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { type CrashMoment, crashAtEveryCommand } from '../../../test/support/crashing-client.ts';
import { chunksOf, largePayload, mebibyte } from '../../../test/support/large-payloads.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { eventForShards } from '../../../test/support/new-event.ts';
import { delivered, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import type { Clock } from '../../core/clock.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { checkShards } from '../check/shard-check.ts';
import type { NewEvent } from '../shard/messages.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';
import { OutboxCarrier } from './outbox-carrier.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const shards = 2;
/** A process that has died reaches no deadline. */
const noDeadlines: Clock = { ...systemClock, after: () => () => {} };

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const queueOf = (shard: number): RedisDeliveryQueue => new RedisDeliveryQueue({ redis: redis.client, prefix, shard });
const every = Array.from({ length: shards }, (_, shard) => shard);
const chunks = () => chunksOf(redis.client, prefix, shards);

/** Carries and delivers all messages. Returns for each message whether its payload was that of its event. */
async function deliverAll(events: readonly NewEvent[]): Promise<Map<string, boolean>> {
  const found = new Map<string, boolean>();
  for (const shard of every) await new OutboxCarrier({ redis: redis.client, prefix }).carry(shard);
  for (const shard of every) {
    for (let round = 0; round < 5; round++) {
      const jobs = await takeFrom(queueOf(shard), 'w1', 64);
      for (const { event, eventId, messageId } of jobs) {
        const payload = event?.chunks === undefined ? null : await queueOf(shard).payload(event.chunks);
        const sent = events.find(({ id }) => id === eventId)?.payload;
        found.set(messageId, payload !== null && sent?.equals(payload) === true);
      }
      await settleAll(queueOf(shard), 'w1', jobs, delivered);
    }
  }
  return found;
}

test.each<CrashMoment>(['before', 'after'])(
  'Of a process that dies %s any of its commands while it stores or carries payloads in chunks no event has a part of one, and no chunk stays for ever',
  async (moment) => {
    let deaths = 0;
    await crashAtEveryCommand(redis.client, moment, {
      prepare: async () => {
        await redis.client.flushall();
        for (const shard of every) await queueOf(shard).refreshShard('w1', 1000);
        return [[0, 1], [0]].map((targets) => ({ ...eventForShards(targets), payload: largePayload(mebibyte + 100) }));
      },
      work: async (client, [first, second]) => {
        if (first === undefined || second === undefined) throw new Error('there are no events');
        await acceptOnly(client, prefix, first);
        await new OutboxCarrier({ redis: client, prefix }).carry(0);
        await new RedisMessageAcceptor({ redis: client, prefix, clock: noDeadlines }).accept(second);
      },
      look: async (events) => {
        expect((await checkShards({ redis: redis.client, prefix, shards })).findings).toEqual([]);
        const before = await deliverAll(events);
        // Whose sender got no answer is sent again.
        const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock, shards: () => shards });
        for (const event of events) await acceptor.accept(event);
        const after = await deliverAll(events);
        expect([...before.keys()].filter((id) => after.has(id))).toEqual([]);
        expect([...before, ...after].every(([, isWhole]) => isWhole)).toBe(true);
        expect(before.size + after.size).toBe(3);
        for (const shard of every) expect(await redis.client.hget(`${prefix}{s${shard}}:ub`, 'org_a')).toBeNull();
        // Each event has three chunks in each of its shards, and others go by themselves.
        const all = await chunks();
        expect(all.filter(({ ttlMs }) => ttlMs === -1)).toHaveLength(9);
        for (let round = 0; round < 3; round++) {
          for (const shard of every) {
            while ((await queueOf(shard).prune({ finishedMs: -1, deadLettersMs: -1 })).hasMore);
            await new OutboxCarrier({ redis: redis.client, prefix }).carry(shard);
          }
        }
        expect((await chunks()).filter(({ ttlMs }) => ttlMs === -1)).toEqual([]);
        deaths++;
      },
    });
    expect(deaths).toBeGreaterThan(10);
  },
);
