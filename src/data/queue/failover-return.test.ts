import { describe, expect, test } from '@jest/globals';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { failoverSuite } from '../../../test/support/failover-suite.ts';
import { makeDue } from '../../../test/support/make-due.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { delivered, settleAll } from '../../../test/support/queue-worker.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { newTimedId } from '../../core/ids.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { Job, TargetSetting } from './delivery-queue.ts';

const shards = 2;
const longAgoMs = 73 * 3_600_000;

const suite = failoverSuite({ shards });

const limited = (queueLimit: number): TargetSetting['throttle'] => ({
  ...targetSetting().throttle,
  mode: 'concurrency',
  maxConcurrency: 5,
  queueLimit,
});

/** Obstacles of dst_b for a message, and their ends. */
const obstacles: Record<string, { begin: (shard: number) => Promise<unknown>; end: (shard: number) => Promise<unknown> }> = {
  'an open circuit': {
    begin: (shard) => suite.queues.setCircuit(shard, 'dst_b', 'open'),
    end: (shard) => suite.queues.setCircuit(shard, 'dst_b', 'closed'),
  },
  'a full queue': {
    begin: async (shard) => {
      await suite.queues.put(shard, 'dst_b', { throttle: limited(1) });
      await suite.queues.send('dst_b', shard);
    },
    end: (shard) => suite.queues.put(shard, 'dst_b', { throttle: limited(5) }),
  },
  'not serving': {
    begin: (shard) => suite.queues.put(shard, 'dst_b', { movesOn: 'all' }),
    end: (shard) => suite.queues.put(shard, 'dst_b', { movesOn: 'nobody' }),
  },
};

const keyOf = (id: string): string => `${suite.queues.base(0)}m:${id.slice('msg_00'.length)}`;
const movesOf = async (id: string): Promise<number> => Number((await suite.redis.client.hget(keyOf(id), hashFields.message.moves)) ?? '0');
const jobsOf = (jobs: readonly Job[], id: string) => jobs.filter(({ messageId }) => messageId === id);

/** As if the first destination were unchecked for 72 hours. */
async function wait72Hours(id: string): Promise<void> {
  const n = (await suite.redis.client.hget(`${suite.queues.base(0)}tn:org_a`, 'rte_a dst_a')) ?? '';
  await suite.redis.client.hset(`${suite.queues.base(0)}t:${n}`, hashFields.target.outageBeganMs, Date.now() - longAgoMs);
  if ((await suite.redis.client.hget(keyOf(id), hashFields.message.status)) === 'p')
    await suite.redis.client.hset(keyOf(id), hashFields.message.dueMs, Date.now() - longAgoMs);
  await suite.redis.client.zadd(`${suite.queues.base(0)}waiting`, 1, `!${n}`);
  await suite.queues.of(0).promote();
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
      await suite.queues.send(destination, at);
      await settleAll(suite.queues.of(at), 'w1', await suite.queues.take(at, destination === 'dst_a' ? { failover } : {}), delivered);
    }
    await suite.queues.setCircuit(0, 'dst_a', 'open');
  }

  describe.each(Object.entries(obstacles))('is held back by %s', (_, obstacle) => {
    async function waiting(): Promise<string> {
      await know();
      await obstacle.begin(shard);
      return await suite.queues.send('dst_a', 0);
    }

    test('waits for its first destination, and does not move about meanwhile', async () => {
      const id = await waiting();
      expect(jobsOf(await suite.queues.looks(8), id)).toEqual([]);
      expect(await movesOf(id)).toBe(shard === 0 ? 0 : 2);
      expect(await suite.reader.delivery('org_a', id)).toMatchObject({ destinationId: 'dst_a', status: 'circuit_open' });
      expect(await suite.redis.client.xlen(`${suite.queues.base(0)}out`)).toBe(0);
    });

    test('goes there once it takes messages again', async () => {
      const id = await waiting();
      await suite.queues.looks();
      await obstacle.end(shard);
      expect(jobsOf(await suite.queues.looks(), id)).toMatchObject([{ messageId: id, target: { destinationId: 'dst_b' } }]);
    });

    test('goes there instead of to the dead letters after 72 hours', async () => {
      const id = await waiting();
      await suite.queues.looks();
      await obstacle.end(shard);
      await wait72Hours(id);
      await suite.queues.carry(0);
      expect(await suite.reader.delivery('org_a', id)).toMatchObject({
        destinationId: 'dst_b',
        failedOverFrom: 'dst_a',
        deadLetterReason: null,
      });
    });

    test('is a dead letter after 72 hours when it is held back there still', async () => {
      const id = await waiting();
      await suite.queues.looks();
      for (let round = 0; round < 5; round++) {
        await wait72Hours(id);
        for (let at = 0; at < shards; at++) await suite.queues.carry(at);
      }
      const end = { status: 'dlq', destinationId: 'dst_a', deadLetterReason: 'circuit_breaker_exhausted' };
      expect(await suite.reader.delivery('org_a', id)).toMatchObject(end);
    });
  });

  test('is in one place when an error after 72 hours cuts its move short', async () => {
    await know();
    await suite.queues.setCircuit(shard, 'dst_b', 'open');
    const id = await suite.queues.send('dst_a', 0);
    await suite.queues.looks();
    await suite.queues.setCircuit(shard, 'dst_b', 'closed');
    const base = suite.queues.base(0);
    const n = (await suite.redis.client.hget(`${base}tn:org_a`, 'rte_a dst_a')) ?? '';
    // Scripts write there once the message is queued at the other target, or in the outbox.
    const broken = shard === 0 ? `${base}ready:org_a` : `${base}exp`;
    await suite.redis.client.del(broken);
    if (shard === 1) await suite.redis.client.hset(keyOf(id), hashFields.message.expiresMs, Date.now() + longAgoMs);
    await suite.redis.client.set(broken, 'broken');
    await expect(wait72Hours(id)).rejects.toThrow();
    await suite.redis.client.del(broken);
    if (shard === 1) await suite.redis.client.hdel(keyOf(id), hashFields.message.expiresMs);
    expect(await suite.redis.client.xlen(`${base}w:${n}`)).toBe(0);
    await suite.queues.carry(0);
    // Wakes its new target.
    const sibling = await suite.queues.send('dst_b', shard);
    const jobs = await suite.queues.looks();
    expect([jobsOf(jobs, id).length, jobsOf(jobs, sibling).length]).toEqual([1, 1]);
    await settleAll(suite.queues.of(shard), 'w1', jobs, delivered);
    expect(await suite.reader.delivery('org_a', id)).toMatchObject({ status: 'delivered', destinationId: 'dst_b' });
  });

  test('stops serving before the first attempt comes back, and goes there again once it serves', async () => {
    await know();
    const id = await suite.queues.send('dst_a', 0);
    const jobs = await suite.queues.looks();
    expect(jobsOf(jobs, id)).toMatchObject([{ target: { destinationId: 'dst_b' } }]);
    await suite.queues.put(shard, 'dst_b', { movesOn: 'all' });
    await settleAll(suite.queues.of(shard), 'w1', jobsOf(jobs, id), { type: 'back' });
    expect(jobsOf(await suite.queues.looks(), id)).toEqual([]);
    expect(await suite.reader.delivery('org_a', id)).toMatchObject({ destinationId: 'dst_a', status: 'circuit_open' });
    await suite.queues.put(shard, 'dst_b', {});
    expect(jobsOf(await suite.queues.looks(), id)).toMatchObject([{ target: { destinationId: 'dst_b' } }]);
  });
});

test('as many messages that another shard has refused go there as it accepts', async () => {
  const failover = { destinations: [{ id: 'dst_b', shard: 1 }], afterAttempts: null };
  await suite.queues.send('dst_a', 0);
  await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0, { failover }), delivered);
  await suite.queues.send('dst_b', 1);
  await suite.queues.take(1, { throttle: limited(1) });
  await suite.queues.setCircuit(0, 'dst_a', 'open');
  const ids: string[] = [];
  for (let k = 0; k < 6; k++) ids.push(await suite.queues.send('dst_a', 0));
  await suite.queues.looks();
  for (const id of ids) expect(await movesOf(id)).toBe(2);
  await suite.queues.put(1, 'dst_b', { throttle: limited(4) });
  await suite.queues.looks();
  expect((await Promise.all(ids.map(movesOf))).sort()).toEqual([2, 2, 2, 3, 3, 3]);
});

test('a half-open circuit in another shard answers that it takes as many messages as it has probes that are not under way', async () => {
  const failover = { destinations: [{ id: 'dst_b', shard: 1 }], afterAttempts: null };
  const circuit = { ...targetSetting().circuit, probeSuccessThreshold: 3 };
  await suite.queues.send('dst_a', 0);
  await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0, { failover }), delivered);
  await suite.queues.send('dst_b', 1);
  await settleAll(suite.queues.of(1), 'w1', await suite.queues.take(1, { circuit }), delivered);
  for (const [shard, id] of ['dst_a', 'dst_b'].entries()) await suite.queues.setCircuit(shard, id, 'open');
  const ids: string[] = [];
  for (let k = 0; k < 6; k++) ids.push(await suite.queues.send('dst_a', 0));
  await suite.queues.looks();
  for (const id of ids) expect(await movesOf(id)).toBe(2);
  const n = (await suite.redis.client.hget(`${suite.queues.base(1)}tn:org_a`, 'rte_a dst_b')) ?? '';
  await suite.redis.client.zadd(`${suite.queues.base(1)}probe:${n}`, Date.now() + 3_600_000, 'under-way', 1, 'forgotten');
  await suite.redis.client.hset(`${suite.queues.base(1)}t:${n}`, hashFields.target.circuitState, 'h');
  // The answer, and what moves then.
  await suite.queues.looks(2);
  expect((await Promise.all(ids.map(movesOf))).sort()).toEqual([2, 2, 2, 2, 3, 3]);
});

test.each([
  ['and ends', []],
  ['and goes to a failover destination', [{ id: 'dst_b', shard: 1 }]],
])('a batch has waited 72 hours for its circuit %s, and the step that ends it reports it', async (_, destinations) => {
  const batch = { layout: '{}', records: 3, bytes: 1_000_000, ageMs: 3_600_000 };
  for (let k = 0; k < 3; k++) await suite.queues.send('dst_a', 0);
  const jobs = await suite.queues.take(0, { batch, failover: { destinations, afterAttempts: null } });
  expect(jobs).toHaveLength(1);
  await suite.queues.setCircuit(0, 'dst_a', 'open');
  await settleAll(suite.queues.of(0), 'w1', jobs, { type: 'back' });
  const n = jobs[0]?.target.number ?? '';
  await suite.redis.client.hset(`${suite.queues.base(0)}m:${jobs[0]?.messageKey}`, hashFields.message.dueMs, Date.now() - longAgoMs);
  await suite.redis.client.hset(`${suite.queues.base(0)}t:${n}`, hashFields.target.outageBeganMs, Date.now() - longAgoMs);
  await suite.redis.client.zadd(`${suite.queues.base(0)}waiting`, 1, `!${n}`);
  expect(await suite.queues.of(0).promote()).toMatchObject({ hasEndedBatches: true });
  while ((await suite.queues.of(0).endBatches()).hasEndedBatches);
});

test('a scheduled message that comes due at a full queue is in one place when an error cuts its move short', async () => {
  const base = suite.queues.base(0);
  const { client } = suite.redis;
  for (const destination of ['dst_b', 'dst_a']) {
    await suite.queues.send(destination, 0);
    const failover = { destinations: [{ id: 'dst_b', shard: 0 }], afterAttempts: null };
    const setting = destination === 'dst_a' ? { failover, throttle: limited(1) } : {};
    await settleAll(suite.queues.of(0), 'w1', await suite.queues.take(0, setting), delivered);
  }
  await suite.queues.send('dst_a', 0);
  const id = newTimedId('msg_', 0, Date.now());
  const notBeforeMs = Date.now() + 3_600_000;
  const targets = [{ messageId: id, routeId: 'rte_a', destinationId: 'dst_a', shard: 0, maxAttempts: 3, notBeforeMs }];
  await acceptOnly(client, suite.prefix, { ...newEvent({ id: newTimedId('evt_', 0, Date.now()), targets }), notBeforeMs });
  await client.hset(keyOf(id), hashFields.message.dueMs, Date.now() - 1);
  await makeDue(client, base, 'due');
  await client.rename(`${base}ready:org_a`, `${base}whole`);
  await client.set(`${base}ready:org_a`, 'broken');
  await expect(suite.queues.of(0).promote()).rejects.toThrow();
  await client.rename(`${base}whole`, `${base}ready:org_a`);
  expect(await client.exists(`${base}due`, `${base}retries`, `${base}scheduled`)).toBe(0);
  // Wakes its new target.
  await suite.queues.send('dst_b', 0);
  const jobs = await suite.queues.looks();
  expect(jobsOf(jobs, id)).toMatchObject([{ target: { destinationId: 'dst_b' } }]);
  await settleAll(suite.queues.of(0), 'w1', jobs, delivered);
});
