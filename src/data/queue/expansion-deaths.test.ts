import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { type CrashMoment, crashAtEveryCommand } from '../../../test/support/crashing-client.ts';
import { eventForShards } from '../../../test/support/new-event.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newTimedId } from '../../core/ids.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { checkShards } from '../check/shard-check.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { type FindFurtherTargets, OutboxCarrier } from './outbox-carrier.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const shards = 2;
const furtherCount = 250;
const windowPlaces = 100;
const furtherDestinations = Array.from({ length: furtherCount }, (_, place) => `dst_of_${place}`);

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** Each search makes new messages: the same window found again is not the same to the shards. */
const findFurther: FindFurtherTargets = async (_, { from, end }) => {
  const next = Math.min(from + windowPlaces, end);
  const targets = furtherDestinations.slice(from, next).map((destinationId, i) => {
    const shard = i % shards;
    return { messageId: newTimedId('msg_', shard, Date.now()), routeId: 'rte_a', destinationId, shard, maxAttempts: 3 };
  });
  return { targets, next: next < end ? next : null };
};

/** The destination of each message that there is. */
async function destinationsOfMessages(): Promise<string[]> {
  const destinations = await Promise.all(
    (await redis.client.keys(`${prefix}{s*}:m:*`)).map(async (key) => {
      const target = await redis.client.hget(key, hashFields.message.target);
      return (await redis.client.hget(`${key.slice(0, key.indexOf('m:'))}t:${target}`, hashFields.target.destination)) ?? '';
    }),
  );
  return destinations.sort();
}

describe('an event whose further targets are found by a process', () => {
  test.each<CrashMoment>(['before', 'after'])(
    'that dies %s any of its commands gets one message for each of them from the next one',
    async (moment) => {
      const carryWith = (client: RedisClient) => new OutboxCarrier({ redis: client, prefix, findFurther });
      const check = () => checkShards({ redis: redis.client, prefix, shards });
      let deaths = 0;
      await crashAtEveryCommand(redis.client, moment, {
        prepare: async () => {
          await redis.client.flushall();
          for (let shard = 0; shard < shards; shard++)
            await new RedisDeliveryQueue({ redis: redis.client, prefix, shard }).refreshShard('w1', 1000);
          await acceptOnly(redis.client, prefix, { ...eventForShards([0, 1]), further: { from: 0, end: furtherCount } });
        },
        work: (client) => carryWith(client).carry(0),
        look: async () => {
          expect((await check()).findings).toEqual([]);
          for (let shard = 0; shard < shards; shard++) await carryWith(redis.client).carry(shard);
          expect(await destinationsOfMessages()).toEqual(['dst_0', 'dst_1', ...furtherDestinations].sort());
          expect((await check()).findings).toEqual([]);
          deaths++;
        },
      });
      expect(deaths).toBeGreaterThan(furtherCount / windowPlaces);
    },
  );
});
