import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { Command } from 'ioredis';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { chunksOf, largePayload, mebibyte } from '../../../test/support/large-payloads.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { eventForShards, newEvent } from '../../../test/support/new-event.ts';
import { dead, delivered, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { clusterClient, type RedisGroup, startRedisCluster } from '../../../test/support/redis-group.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessageReader } from '../history/message-reader.ts';
import { RedisMessageReplayer } from '../history/message-replayer.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import type { Job, TargetSetting } from '../queue/delivery-queue.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { OutboxCarrier } from '../queue/outbox-carrier.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import type { NewEvent } from './messages.ts';
import { PayloadChunks } from './payload-chunks.ts';
import { shardKeys } from './shard-keys.ts';

const prefix = 'test:';
const shards = 3;

interface Store {
  redis: RedisClient;
  clear(): Promise<void>;
  stop(): Promise<void>;
}

async function single(): Promise<Store> {
  const server: RedisServer = await startRedis();
  return { redis: server.client, clear: async () => void (await server.client.flushall()), stop: () => server.stop() };
}

async function cluster(): Promise<Store> {
  const group: RedisGroup = await startRedisCluster();
  const redis = await clusterClient(group);
  return {
    redis,
    clear: async () => {
      for (const { client } of await group.masters()) await client.flushall();
    },
    stop: async () => {
      redis.disconnect();
      await group.stop();
    },
  };
}

describe.each([
  ['one Redis', single],
  ['a Redis Cluster', cluster],
])('a payload above 1 MiB in %s', (_name, start) => {
  let store: Store;
  let redis: RedisClient;
  let queues: RedisDeliveryQueue[];
  let acceptor: RedisMessageAcceptor;
  let reader: RedisMessageReader;
  let carrier: OutboxCarrier;
  const chunks = () => chunksOf(redis, prefix, shards);

  beforeAll(async () => {
    store = await start();
    redis = store.redis;
  });
  afterAll(() => store.stop());
  beforeEach(async () => {
    await store.clear();
    queues = Array.from({ length: shards }, (_, shard) => new RedisDeliveryQueue({ redis, prefix, shard }));
    acceptor = new RedisMessageAcceptor({ redis, prefix, clock: lenientClock, shards: () => shards });
    reader = new RedisMessageReader({ redis, prefix, shards: () => shards });
    carrier = new OutboxCarrier({ redis, prefix });
    for (const queue of queues) await queue.refreshShard('w1', 1000);
  });
  afterEach(async () => {
    expect((await checkShards({ redis, prefix, shards })).findings).toEqual([]);
  });

  const queueOf = (shard: number): RedisDeliveryQueue => {
    const queue = queues[shard];
    if (queue === undefined) throw new Error(`there is no shard ${shard}`);
    return queue;
  };
  const take = async (shard: number, setting: Partial<TargetSetting> = {}): Promise<Job[]> => {
    for (let round = 0; round < 10; round++) {
      const jobs = await takeFrom(queueOf(shard), 'w1', 64, setting);
      if (jobs.length > 0) return jobs;
    }
    return [];
  };
  const payloadsOf = (shard: number, jobs: readonly Job[]) =>
    Promise.all(jobs.map(({ event }) => (event?.chunks === undefined ? null : queueOf(shard).payload(event.chunks))));
  const unfinished = async (shard: number): Promise<number> => Number((await redis.hget(`${prefix}{s${shard}}:ub`, 'org_a')) ?? '0');
  const prune = async (): Promise<void> => {
    for (let round = 0; round < 3; round++) {
      for (const [shard, queue] of queues.entries()) {
        while ((await queue.prune({ finishedMs: -1, deadLettersMs: -1 })).hasMore);
        await carrier.carry(shard);
      }
    }
  };

  test('is stored in chunks beside the text of the event, and read again as it was', async () => {
    const payload = largePayload();
    const event = newEvent({ payload });
    expect(await acceptor.accept(event)).toBe(true);
    expect(await chunks()).toHaveLength(7);
    expect((await chunks()).every(({ ttlMs }) => ttlMs === -1)).toBe(true);
    expect(await redis.strlen(shardKeys(prefix, 0).event(event.id.slice(6)))).toBeLessThan(1000);
    const [job, ...others] = await take(0);
    expect(others).toEqual([]);
    expect(job?.event).toMatchObject({ payload: Buffer.alloc(0), chunks: { bytes: payload.length } });
    expect((await payloadsOf(0, job === undefined ? [] : [job]))[0]?.equals(payload)).toBe(true);
  });

  test('is in memory once when it is read: its chunks take none any more', async () => {
    const payload = largePayload(3 * mebibyte);
    const chunked = await new PayloadChunks({ redis, prefix }).write(0, payload);
    const read = jest.spyOn(redis, 'getBuffer');
    expect((await new PayloadChunks({ redis, prefix }).read(0, chunked))?.equals(payload)).toBe(true);
    const pieces = await Promise.all(read.mock.results.map(({ value }) => value));
    read.mockRestore();
    expect(pieces.map((piece) => Buffer.isBuffer(piece) && piece.length)).toEqual(Array(6).fill(0));
  });

  test.each([
    [mebibyte, 0],
    [mebibyte + 1, 3],
    [2 * mebibyte, 4],
    [25 * mebibyte, 50],
  ])('of %i bytes is in %i chunks', async (bytes, count) => {
    const payload = largePayload(bytes);
    const event = newEvent({ payload });
    await acceptor.accept(event);
    expect(await chunks()).toHaveLength(count);
    const stored = await reader.payload('org_a', event.id);
    const pieces: Buffer[] = [];
    for await (const piece of stored?.pieces ?? []) pieces.push(piece ?? Buffer.from('gone'));
    expect(stored?.size).toBe(bytes);
    expect(Buffer.concat(pieces).equals(payload)).toBe(true);
    expect(await reader.payload('org_b', event.id)).toBeNull();
  });

  test('goes over a connection of its own where there is one, there and back', async () => {
    const others = new Proxy(redis, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (name !== 'sendCommand' && name !== 'getBuffer') return typeof member === 'function' ? member.bind(target) : member;
        return async (what: Command | string) => {
          throw new Error(`a chunk is no business of this connection: ${typeof what === 'string' ? what : what.name}`);
        };
      },
    });
    const event = newEvent({ payload: largePayload() });
    const storing = new RedisMessageAcceptor({ redis: others, payloads: redis, prefix, clock: lenientClock, shards: () => shards });
    expect(await storing.accept(event)).toBe(true);
    const reading = new RedisDeliveryQueue({ redis: others, payloads: redis, prefix, tallyMs: 0 });
    const [job] = await take(0);
    const payload = job?.event?.chunks === undefined ? null : await reading.payload(job.event.chunks);
    expect(payload?.equals(event.payload)).toBe(true);
  });

  test('leaves no chunk of its own when the event was stored before', async () => {
    const event = newEvent({ payload: largePayload() });
    await acceptor.accept(event);
    const before = await chunks();
    expect(await acceptor.accept(event)).toBe(false);
    expect(await acceptor.accept({ ...event, payload: largePayload() })).toBe(false);
    expect((await chunks()).map(({ key }) => key).sort()).toEqual(before.map(({ key }) => key).sort());
    expect((await payloadsOf(0, await take(0)))[0]?.equals(event.payload)).toBe(true);
  });

  test('whose chunks nobody names is gone after a minute, and cannot be named any more', async () => {
    await new PayloadChunks({ redis, prefix }).write(0, largePayload());
    const written = await chunks();
    expect(written).toHaveLength(7);
    for (const { ttlMs } of written) expect([ttlMs > 0, ttlMs <= 60_000]).toEqual([true, true]);
  });

  test('is not stored when a chunk is gone before the event names it', async () => {
    const losing = new Proxy(redis, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (name !== 'sendCommand') return typeof member === 'function' ? member.bind(target) : member;
        return async (command: Command) =>
          String(command.args[0]).endsWith(':2') ? command.resolve('OK') : await target.sendCommand(command);
      },
    });
    const event = newEvent({ payload: largePayload() });
    const failing = new RedisMessageAcceptor({ redis: losing, prefix, clock: lenientClock, shards: () => shards });
    await expect(failing.accept(event)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(await reader.event('org_a', event.id)).toBeNull();
    expect(await acceptor.accept(event)).toBe(true);
    expect((await payloadsOf(0, await take(0)))[0]?.equals(event.payload)).toBe(true);
    expect(await chunks()).toHaveLength(7);
  });

  test.each([
    ['full', '1', 'UNAVAILABLE'],
    ['over', 'org_a', 'QUEUE_FULL'],
  ])('is refused before it is written where the shard says "%s"', async (field, value, code) => {
    // A shard that has been read reports so until the next read.
    await acceptor.accept(newEvent());
    await redis.hset(`${prefix}{s0}:ctl`, field, value);
    await expect(acceptor.accept(newEvent({ payload: largePayload() }))).rejects.toMatchObject({ code });
    expect(await chunks()).toEqual([]);
    await redis.hdel(`${prefix}{s0}:ctl`, field);
  });

  test('counts to the unfinished bytes of its organization in each shard that has a copy, and is given back', async () => {
    const payload = largePayload();
    const event = eventForShards([0, 1, 1, 2]);
    await acceptor.accept({ ...event, payload });
    await carrier.carry(0);
    for (const shard of [0, 1, 2]) {
      expect(await unfinished(shard)).toBeGreaterThan(payload.length);
      expect(await unfinished(shard)).toBeLessThan(payload.length + 10_000);
    }
    expect(await chunks()).toHaveLength(21);
    expect((await chunks()).every(({ ttlMs }) => ttlMs === -1)).toBe(true);
    for (const shard of [0, 1, 2]) {
      const jobs = await take(shard);
      for (const found of await payloadsOf(shard, jobs)) expect(found?.equals(payload)).toBe(true);
      await settleAll(queueOf(shard), 'w1', jobs, delivered);
    }
    for (const shard of [0, 1, 2]) expect(await unfinished(shard)).toBe(0);
    expect(Number(await redis.hget(`${prefix}{s1}:fb`, 'org_a'))).toBeGreaterThan(payload.length);
    await prune();
    expect(await chunks()).toEqual([]);
    for (const shard of [0, 1, 2]) expect(await redis.hget(`${prefix}{s${shard}}:fb`, 'org_a')).toBeNull();
  });

  test('is there for each attempt, as a dead letter and for its replay, and goes with the event', async () => {
    const event = newEvent({ payload: largePayload() });
    await acceptor.accept(event);
    const retry = { type: 'retry', attempt: failure, delayMs: 0 } as const;
    await settleAll(queueOf(0), 'w1', await take(0), retry);
    await queueOf(0).promote();
    const again = await take(0);
    expect(again).toMatchObject([{ attempts: 1 }]);
    expect((await payloadsOf(0, again))[0]?.equals(event.payload)).toBe(true);
    await settleAll(queueOf(0), 'w1', again, dead);
    expect(await unfinished(0)).toBe(0);
    const replayer = new RedisMessageReplayer({ redis, prefix, clock: systemClock, shards: () => shards });
    await replayer.replay('org_a', event.targets[0]?.messageId ?? '');
    expect(await unfinished(0)).toBeGreaterThan(event.payload.length);
    const replayed = await take(0);
    expect((await payloadsOf(0, replayed))[0]?.equals(event.payload)).toBe(true);
    await settleAll(queueOf(0), 'w1', replayed, delivered);
    await prune();
    expect(await reader.event('org_a', event.id)).toBeNull();
    expect(await chunks()).toEqual([]);
  });

  test('moves with its message to a failover destination of another shard', async () => {
    const event = newEvent({ payload: largePayload() });
    await acceptor.accept(event);
    const failover = { destinations: [{ id: 'dst_spare', shard: 1 }], afterAttempts: null };
    const jobs = await take(0, { failover });
    await settleAll(queueOf(0), 'w1', jobs, dead);
    await carrier.carry(0);
    await carrier.carry(0);
    const moved = await take(1);
    expect(moved).toMatchObject([{ failover: { originalDestinationId: 'dst_a' } }]);
    expect((await payloadsOf(1, moved))[0]?.equals(event.payload)).toBe(true);
    expect(await unfinished(1)).toBeGreaterThan(event.payload.length);
    await settleAll(queueOf(1), 'w1', moved, delivered);
    await prune();
    expect(await chunks()).toEqual([]);
  });

  test("that has lost a chunk is nobody's payload, and neither is a copy of it", async () => {
    await acceptor.accept(newEvent({ payload: largePayload() }));
    const [lost] = (await chunks()).filter(({ key }) => key.endsWith(':3'));
    await redis.del(lost?.key ?? '');
    const jobs = await take(0);
    expect((await payloadsOf(0, jobs)).map((payload) => payload?.length)).toEqual([undefined]);
    const [job] = jobs;
    const chunked = job?.event?.chunks ?? { token: '', bytes: 0 };
    const copies = new PayloadChunks({ redis, prefix });
    expect(await copies.copy(0, 1, chunked)).toBe(false);
    expect((await copies.read(1, chunked))?.length).toBeUndefined();
    expect((await chunks()).filter(({ key }) => key.includes('{s1}'))).toEqual([]);
    await settleAll(queueOf(0), 'w1', jobs, { type: 'dead', attempt: null, reason: 'payload_not_found' });
  });

  describe.each([
    ['its first chunk', [0]],
    ['a chunk in the middle', [3]],
    ['its last chunk', [6]],
    ['all of its chunks', [0, 1, 2, 3, 4, 5, 6]],
  ])('that has lost %s', (_lost, numbers) => {
    const lose = async (shard: number): Promise<void> => {
      for (const { key } of await chunks())
        if (key.includes(`{s${shard}}`) && numbers.some((k) => key.endsWith(`:${k}`))) await redis.del(key);
    };
    const ofCopy = async () => (await chunks()).filter(({ key }) => key.includes('{s1}'));

    test('is copied late, when the copy is gone again, and leaves no chunk there', async () => {
      const event = eventForShards([0, 1]);
      await acceptor.accept({ ...event, payload: largePayload() });
      await carrier.carry(0);
      const [job] = await take(1);
      const chunked = job?.event?.chunks ?? { token: '', bytes: 0 };
      await settleAll(queueOf(1), 'w1', job === undefined ? [] : [job], delivered);
      while ((await queueOf(1).prune({ finishedMs: -1, deadLettersMs: -1 })).hasMore);
      expect(await ofCopy()).toEqual([]);
      await lose(0);
      expect(await new PayloadChunks({ redis, prefix }).copy(0, 1, chunked)).toBe(false);
      expect(await ofCopy()).toEqual([]);
    });

    test('arrives in another shard as one that has none, and its messages end there', async () => {
      await acceptOnly(redis, prefix, { ...eventForShards([0, 1]), payload: largePayload() });
      await lose(0);
      await carrier.carry(0);
      const jobs = await take(1);
      expect(jobs).toHaveLength(1);
      expect(await payloadsOf(1, jobs)).toEqual([null]);
      expect(await ofCopy()).toEqual([]);
      await settleAll(queueOf(1), 'w1', jobs, { type: 'dead', attempt: null, reason: 'payload_not_found' });
      expect(await unfinished(1)).toBe(0);
    });

    test('moves to another shard as one that has none, and ends there', async () => {
      await acceptor.accept(newEvent({ payload: largePayload() }));
      const failover = { destinations: [{ id: 'dst_spare', shard: 1 }], afterAttempts: null };
      await settleAll(queueOf(0), 'w1', await take(0, { failover }), dead);
      await lose(0);
      for (let round = 0; round < 2; round++) await carrier.carry(0);
      const jobs = await take(1);
      expect(jobs).toHaveLength(1);
      expect(await payloadsOf(1, jobs)).toEqual([null]);
      expect(await ofCopy()).toEqual([]);
      await settleAll(queueOf(1), 'w1', jobs, { type: 'dead', attempt: null, reason: 'payload_not_found' });
      expect(await unfinished(1)).toBe(0);
    });
  });

  test('is shown by its beginning, and lists do not touch it', async () => {
    const event: NewEvent = newEvent({ payload: largePayload() });
    await acceptor.accept(event);
    const seen = await reader.event('org_a', event.id);
    expect(seen).toMatchObject({ size: event.payload.length, payload: null });
    expect(seen?.beginning?.equals(event.payload.subarray(0, 65_536))).toBe(true);
    await settleAll(queueOf(0), 'w1', await take(0), dead);
    const [sample] = await reader.failedSamples('org_a', 'rte_a', { limit: 1, payloadBytes: 100 });
    expect(sample?.event).toMatchObject({ size: event.payload.length });
    expect(sample?.event?.payload.equals(event.payload.subarray(0, 100))).toBe(true);
    // Readers of a chunk fail now.
    for (const { key } of await chunks()) {
      await redis.del(key);
      await redis.rpush(key, 'no chunk');
    }
    const listed = await reader.events('org_a', {}, { limit: 10 });
    expect(listed.items).toMatchObject([{ id: event.id, size: event.payload.length, payload: null, beginning: null }]);
    expect((await reader.deliveries('org_a', {}, { limit: 10 })).items).toHaveLength(1);
    await expect(reader.event('org_a', event.id)).rejects.toThrow();
  });

  test('goes with its organization', async () => {
    const event = eventForShards([0, 1]);
    await acceptor.accept({ ...event, payload: largePayload() });
    await carrier.carry(0);
    await new RedisMessagePurger({ redis, prefix, shards }).purgeOrganization('org_a', new AbortController().signal);
    expect(await chunks()).toEqual([]);
  });
});
