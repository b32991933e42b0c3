import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { FailoverQueues } from '../../../test/support/failover-queues.ts';
import { delivered, settleAll } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { field } from '../../../test/support/redis-fields.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessageReader } from '../history/message-reader.ts';
import type { Job, TargetSetting } from './delivery-queue.ts';

const prefix = 'test:';
const shards = 2;
const longAgoMs = 73 * 3_600_000;

let redis: RedisServer;
let queues: FailoverQueues;
let reader: RedisMessageReader;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  queues = new FailoverQueues(redis.client, prefix, shards);
  reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => shards });
  await queues.begin();
});
afterEach(async () => {
  expect((await checkShards({ redis: redis.client, prefix, shards })).findings).toEqual([]);
});

const limited = (queueLimit: number): TargetSetting['throttle'] => ({
  ...targetSetting().throttle,
  mode: 'concurrency',
  maxConcurrency: 5,
  queueLimit,
});

/** What keeps dst_b from taking a message, and what ends that. */
const obstacles: Record<string, { begin: (shard: number) => Promise<unknown>; end: (shard: number) => Promise<unknown> }> = {
  'an open circuit': {
    begin: (shard) => queues.setCircuit(shard, 'dst_b', 'open'),
    end: (shard) => queues.setCircuit(shard, 'dst_b', 'closed'),
  },
  'a full queue': {
    begin: async (shard) => {
      await queues.put(shard, 'dst_b', { throttle: limited(1) });
      await queues.send('dst_b', shard);
    },
    end: (shard) => queues.put(shard, 'dst_b', { throttle: limited(5) }),
  },
  'not serving': {
    begin: (shard) => queues.put(shard, 'dst_b', { movesOn: 'all' }),
    end: (shard) => queues.put(shard, 'dst_b', { movesOn: 'nobody' }),
  },
};

const keyOf = (id: string): string => `${queues.base(0)}m:${id.slice('msg_00'.length)}`;
const movesOf = async (id: string): Promise<number> => Number((await redis.client.hget(keyOf(id), field.message.moves)) ?? '0');
const jobsOf = (jobs: readonly Job[], id: string) => jobs.filter(({ messageId }) => messageId === id);

/** As when nobody has looked at the first destination for 72 hours. */
async function wait72Hours(id: string): Promise<void> {
  const n = (await redis.client.hget(`${queues.base(0)}tn:org_a`, 'rte_a dst_a')) ?? '';
  await redis.client.hset(`${queues.base(0)}t:${n}`, field.target.outageBeganMs, Date.now() - longAgoMs);
  if ((await redis.client.hget(keyOf(id), field.message.status)) === 'p')
    await redis.client.hset(keyOf(id), field.message.dueMs, Date.now() - longAgoMs);
  await redis.client.zadd(`${queues.base(0)}waiting`, 1, `!${n}`);
  await queues.of(0).promote();
}

describe.each([
  ['the same shard', 0],
  ['another shard', 1],
])('a message whose first destination has an open circuit and whose failover destination in %s', (_, shard) => {
  const failover = { destinations: [{ id: 'dst_b', shard }], afterAttempts: null };

  async function know(): Promise<void> {
    for (const [destination, at] of [
      ['dst_a', 0],
      ['dst_b', shard],
    ] as const) {
      await queues.send(destination, at);
      await settleAll(queues.of(at), 'w1', await queues.take(at, destination === 'dst_a' ? { failover } : {}), delivered);
    }
    await queues.setCircuit(0, 'dst_a', 'open');
  }

  describe.each(Object.entries(obstacles))('is held back by %s', (_, obstacle) => {
    async function waiting(): Promise<string> {
      await know();
      await obstacle.begin(shard);
      return await queues.send('dst_a', 0);
    }

    test('waits for its first destination, and does not move about meanwhile', async () => {
      const id = await waiting();
      expect(jobsOf(await queues.looks(8), id)).toEqual([]);
      expect(await movesOf(id)).toBe(shard === 0 ? 0 : 2);
      expect(await reader.delivery('org_a', id)).toMatchObject({ destinationId: 'dst_a', status: 'circuit_open' });
      expect(await redis.client.xlen(`${queues.base(0)}out`)).toBe(0);
    });

    test('goes there once it takes messages again', async () => {
      const id = await waiting();
      await queues.looks();
      await obstacle.end(shard);
      expect(jobsOf(await queues.looks(), id)).toMatchObject([{ messageId: id, target: { destinationId: 'dst_b' } }]);
    });

    test('goes there instead of to the dead letters after 72 hours', async () => {
      const id = await waiting();
      await queues.looks();
      await obstacle.end(shard);
      await wait72Hours(id);
      await queues.carry(0);
      expect(await reader.delivery('org_a', id)).toMatchObject({ destinationId: 'dst_b', failedOverFrom: 'dst_a', deadLetterReason: null });
    });

    test('is a dead letter after 72 hours when it is held back there still', async () => {
      const id = await waiting();
      await queues.looks();
      for (let round = 0; round < 5; round++) {
        await wait72Hours(id);
        for (let at = 0; at < shards; at++) await queues.carry(at);
      }
      const end = { status: 'dlq', destinationId: 'dst_a', deadLetterReason: 'circuit_breaker_exhausted' };
      expect(await reader.delivery('org_a', id)).toMatchObject(end);
    });
  });

  test('stops serving before the first attempt comes back, and goes there again once it serves', async () => {
    await know();
    const id = await queues.send('dst_a', 0);
    const jobs = await queues.looks();
    expect(jobsOf(jobs, id)).toMatchObject([{ target: { destinationId: 'dst_b' } }]);
    await queues.put(shard, 'dst_b', { movesOn: 'all' });
    await settleAll(queues.of(shard), 'w1', jobsOf(jobs, id), { type: 'back' });
    expect(jobsOf(await queues.looks(), id)).toEqual([]);
    expect(await reader.delivery('org_a', id)).toMatchObject({ destinationId: 'dst_a', status: 'circuit_open' });
    await queues.put(shard, 'dst_b', {});
    expect(jobsOf(await queues.looks(), id)).toMatchObject([{ target: { destinationId: 'dst_b' } }]);
  });
});

test('of many messages that another shard has refused so many go there as it says it has room for', async () => {
  const failover = { destinations: [{ id: 'dst_b', shard: 1 }], afterAttempts: null };
  await queues.send('dst_a', 0);
  await settleAll(queues.of(0), 'w1', await queues.take(0, { failover }), delivered);
  await queues.send('dst_b', 1);
  await queues.take(1, { throttle: limited(1) });
  await queues.setCircuit(0, 'dst_a', 'open');
  const ids: string[] = [];
  for (let k = 0; k < 6; k++) ids.push(await queues.send('dst_a', 0));
  await queues.looks();
  for (const id of ids) expect(await movesOf(id)).toBe(2);
  await queues.put(1, 'dst_b', { throttle: limited(4) });
  await queues.looks();
  expect((await Promise.all(ids.map(movesOf))).sort()).toEqual([2, 2, 2, 3, 3, 3]);
});

test('a half-open circuit in another shard answers that it takes as many messages as it has probes that are not under way', async () => {
  const failover = { destinations: [{ id: 'dst_b', shard: 1 }], afterAttempts: null };
  const circuit = { ...targetSetting().circuit, probeSuccessThreshold: 3 };
  await queues.send('dst_a', 0);
  await settleAll(queues.of(0), 'w1', await queues.take(0, { failover }), delivered);
  await queues.send('dst_b', 1);
  await settleAll(queues.of(1), 'w1', await queues.take(1, { circuit }), delivered);
  for (const [shard, id] of ['dst_a', 'dst_b'].entries()) await queues.setCircuit(shard, id, 'open');
  const ids: string[] = [];
  for (let k = 0; k < 6; k++) ids.push(await queues.send('dst_a', 0));
  await queues.looks();
  for (const id of ids) expect(await movesOf(id)).toBe(2);
  const n = (await redis.client.hget(`${queues.base(1)}tn:org_a`, 'rte_a dst_b')) ?? '';
  await redis.client.zadd(`${queues.base(1)}probe:${n}`, Date.now() + 3_600_000, 'under-way', 1, 'forgotten');
  await redis.client.hset(`${queues.base(1)}t:${n}`, field.target.circuitState, 'h');
  // The answer, and what moves then.
  await queues.looks(2);
  expect((await Promise.all(ids.map(movesOf))).sort()).toEqual([2, 2, 2, 2, 3, 3]);
});

test.each([
  ['and ends', []],
  ['and goes to a failover destination', [{ id: 'dst_b', shard: 1 }]],
])('a batch has waited 72 hours for its circuit %s, and the step that ends it says so', async (_, destinations) => {
  const batch = { layout: '{}', records: 3, bytes: 1_000_000, ageMs: 3_600_000 };
  for (let k = 0; k < 3; k++) await queues.send('dst_a', 0);
  const jobs = await queues.take(0, { batch, failover: { destinations, afterAttempts: null } });
  expect(jobs).toHaveLength(1);
  await queues.setCircuit(0, 'dst_a', 'open');
  await settleAll(queues.of(0), 'w1', jobs, { type: 'back' });
  const n = jobs[0]?.target.number ?? '';
  await redis.client.hset(`${queues.base(0)}m:${jobs[0]?.messageKey}`, field.message.dueMs, Date.now() - longAgoMs);
  await redis.client.hset(`${queues.base(0)}t:${n}`, field.target.outageBeganMs, Date.now() - longAgoMs);
  await redis.client.zadd(`${queues.base(0)}waiting`, 1, `!${n}`);
  expect(await queues.of(0).promote()).toMatchObject({ hasEndedBatches: true });
  while ((await queues.of(0).endBatches()).hasEndedBatches);
});
