import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { delivered, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { field } from '../../../test/support/redis-fields.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { newTimedId } from '../../core/ids.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessageReader } from '../history/message-reader.ts';
import type { Job, TargetSetting } from './delivery-queue.ts';
import { OutboxCarrier } from './outbox-carrier.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const shards = 2;
const base = (shard: number): string => `${prefix}{s${shard}}:`;
const hourMs = 3_600_000;

let redis: RedisServer;
let queues: RedisDeliveryQueue[];
let carrier: OutboxCarrier;
let reader: RedisMessageReader;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  queues = Array.from({ length: shards }, (_, shard) => new RedisDeliveryQueue({ redis: redis.client, prefix, shard }));
  carrier = new OutboxCarrier({ redis: redis.client, prefix });
  reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => shards });
  for (const queue of queues) await queue.tend('w1', 1000);
});
afterEach(async () => {
  expect((await checkShards({ redis: redis.client, prefix, shards })).findings).toEqual([]);
});

function queueOf(shard: number): RedisDeliveryQueue {
  const queue = queues[shard];
  if (queue === undefined) throw new Error(`there is no shard ${shard}`);
  return queue;
}

/** The only message of an event for the destination. */
async function send(destinationId: string, shard: number): Promise<string> {
  const messageId = newTimedId('msg_', shard, Date.now());
  const targets = [{ messageId, routeId: 'rte_a', destinationId, shard, maxAttempts: 3 }];
  await acceptOnly(redis.client, prefix, newEvent({ id: newTimedId('evt_', shard, Date.now()), targets }));
  return messageId;
}

async function numberOf(shard: number, destination: string): Promise<string> {
  return (await redis.client.hget(`${base(shard)}tn:org_a`, `rte_a ${destination}`)) ?? '';
}

/** Lets a shard know a target, by a message that it delivers. */
async function know(shard: number, destination: string, setting: Partial<TargetSetting>): Promise<void> {
  await send(destination, shard);
  await settleAll(queueOf(shard), 'w1', await takeFrom(queueOf(shard), 'w1', 64, setting), delivered);
}

async function put(shard: number, destination: string, setting: Partial<TargetSetting>): Promise<void> {
  for (const target of (await queueOf(shard).targets(1)).targets)
    if (target.destinationId === destination) await queueOf(shard).configure(target, targetSetting(setting));
}

async function setCircuit(shard: number, destination: string, state: 'o' | null): Promise<void> {
  const n = await numberOf(shard, destination);
  const { circuitState, cooldownEndMs, outageBeganMs } = field.target;
  if (state === null) return void (await redis.client.hdel(`${base(shard)}t:${n}`, circuitState, cooldownEndMs, outageBeganMs));
  const open = { [circuitState]: state, [cooldownEndMs]: Date.now() + hourMs, [outageBeganMs]: Date.now() };
  await redis.client.hset(`${base(shard)}t:${n}`, open);
  await redis.client.zadd(`${base(shard)}waiting`, Date.now() + hourMs, `!${n}`);
}

/** What the workers do within a second or two, however often. Answers what they would send. */
async function looks(rounds = 4): Promise<Job[]> {
  const jobs: Job[] = [];
  for (let round = 0; round < rounds; round++) {
    for (let shard = 0; shard < shards; shard++) {
      for (const limiter of await redis.client.zrange(`${base(shard)}waiting`, '0', '-1'))
        await redis.client.zadd(`${base(shard)}waiting`, 'XX', Date.now() - 1, limiter);
      await queueOf(shard).promote();
      jobs.push(...(await takeFrom(queueOf(shard), 'w1', 64)));
      await carrier.carry(shard);
      // A second has passed since it asked.
      for (const key of await redis.client.keys(`${base(shard)}asked:*`)) {
        const [entry = ''] = (await redis.client.get(key))?.split(' ') ?? [];
        await redis.client.set(key, `${entry} 1`, 'KEEPTTL');
      }
    }
  }
  return jobs;
}

const movesOf = async (id: string): Promise<number> =>
  Number((await redis.client.hget(`${base(0)}m:${id.slice('msg_00'.length)}`, field.message.moves)) ?? '0');

const limited = (queueLimit: number): TargetSetting['throttle'] => ({
  mode: 'concurrency',
  rateLimit: null,
  rateUnit: null,
  maxConcurrency: 5,
  queueLimit,
});

/** What keeps the destination from taking a message, and what ends that. */
const obstacles: Record<string, { begin: (shard: number, id: string) => Promise<unknown>; end: (shard: number, id: string) => Promise<unknown> }> = {
  'an open circuit': { begin: (shard, id) => setCircuit(shard, id, 'o'), end: (shard, id) => setCircuit(shard, id, null) },
  'a full queue': {
    begin: async (shard, id) => {
      await put(shard, id, { throttle: limited(1) });
      await send(id, shard);
    },
    end: (shard, id) => put(shard, id, { throttle: limited(5) }),
  },
  'not serving': { begin: (shard, id) => put(shard, id, { movesOn: 'all' }), end: (shard, id) => put(shard, id, { movesOn: 'nobody' }) },
};

describe.each([
  ['the same shard', 0],
  ['another shard', 1],
])('a message whose first destination has an open circuit and whose failover destination in %s was held back', (_, shard) => {
  const failover = { destinations: [{ id: 'dst_b', shard }], afterAttempts: null };

  async function waiting({ begin }: (typeof obstacles)[string]): Promise<string> {
    await know(0, 'dst_a', { failover });
    await know(shard, 'dst_b', {});
    await setCircuit(0, 'dst_a', 'o');
    await begin(shard, 'dst_b');
    return await send('dst_a', 0);
  }

  describe.each(Object.entries(obstacles))('by %s', (_, obstacle) => {
    const ofOthers = (jobs: readonly Job[], id: string) => jobs.filter(({ messageId }) => messageId === id);

    test('waits for its first destination, and does not move about meanwhile', async () => {
      const id = await waiting(obstacle);
      expect(ofOthers(await looks(8), id)).toEqual([]);
      expect(await movesOf(id)).toBe(shard === 0 ? 0 : 2);
      expect(await reader.delivery('org_a', id)).toMatchObject({ destinationId: 'dst_a', status: 'circuit_open' });
      expect(await redis.client.xlen(`${base(0)}out`)).toBe(0);
    });

    test('goes there once it takes messages again', async () => {
      const id = await waiting(obstacle);
      await looks();
      await obstacle.end(shard, 'dst_b');
      expect(ofOthers(await looks(), id)).toMatchObject([{ messageId: id, target: { destinationId: 'dst_b' } }]);
    });

    /** As after 72 hours for which nobody has looked. */
    async function wait72Hours(id: string): Promise<void> {
      const n = await numberOf(0, 'dst_a');
      const longAgo = Date.now() - 73 * hourMs;
      await redis.client.hset(`${base(0)}t:${n}`, field.target.outageBeganMs, longAgo);
      const key = `${base(0)}m:${id.slice('msg_00'.length)}`;
      if ((await redis.client.hget(key, field.message.status)) === 'p') await redis.client.hset(key, field.message.dueMs, longAgo);
      await redis.client.zadd(`${base(0)}waiting`, 1, `!${n}`);
      await queueOf(0).promote();
    }

    test('goes there instead of to the dead letters after 72 hours', async () => {
      const id = await waiting(obstacle);
      await looks();
      await obstacle.end(shard, 'dst_b');
      await wait72Hours(id);
      await carrier.carry(0);
      expect(await reader.delivery('org_a', id)).toMatchObject({
        destinationId: 'dst_b',
        failedOverFrom: 'dst_a',
        deadLetterReason: null,
      });
    });

    test('is a dead letter after 72 hours when it is held back there still', async () => {
      const id = await waiting(obstacle);
      await looks();
      for (let round = 0; round < 5; round++) {
        await wait72Hours(id);
        for (let at = 0; at < shards; at++) await carrier.carry(at);
      }
      expect(await reader.delivery('org_a', id)).toMatchObject({
        status: 'dlq',
        destinationId: 'dst_a',
        deadLetterReason: 'circuit_breaker_exhausted',
      });
    });
  });
});
