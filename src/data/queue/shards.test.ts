import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { eventForShards, newEvent } from '../../../test/support/new-event.ts';
import { dead, delivered, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newTimedId } from '../../core/ids.ts';
import { namedArgument } from '../../redis/script.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessageReader } from '../history/message-reader.ts';
import { RedisMessageReplayer } from '../history/message-replayer.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { NewEvent } from '../shard/messages.ts';
import { recordId, recordKey } from '../shard/record-key.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';
import type { Job, Outcome } from './delivery-queue.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';
import { OutboxCarrier } from './outbox-carrier.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const shards = 3;

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
  for (const queue of queues) await queue.refreshShard('w1', 1000);
});
afterEach(async () => {
  expect((await checkShards({ redis: redis.client, prefix, shards })).findings).toEqual([]);
});

function queueOf(shard: number): RedisDeliveryQueue {
  const queue = queues[shard];
  if (queue === undefined) throw new Error(`there is no shard ${shard}`);
  return queue;
}

/** One dequeue reads some targets only, so an empty one is no proof. */
async function take(shard: number, failover: { id: string; shard: number }[] = []): Promise<Job[]> {
  for (let round = 0; round < 10; round++) {
    const jobs = await takeFrom(queueOf(shard), 'w1', 64, { failover: { destinations: failover, afterAttempts: null } });
    if (jobs.length > 0) return jobs;
  }
  return [];
}
const settle = (shard: number, jobs: readonly Job[], outcome: Outcome): Promise<boolean[]> =>
  settleAll(queueOf(shard), 'w1', jobs, outcome);

describe('an event for several shards', () => {
  test('an event for several shards is delivered from each of them, with its payload, and has one status', async () => {
    const event = eventForShards([0, 1, 1]);
    await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock }).accept(event);
    await carrier.carry(0);
    await settle(0, await take(0), delivered);
    expect(await reader.event('org_a', event.id)).toMatchObject({ status: 'pending' });
    const jobs = await take(1);
    expect(jobs.map(({ messageId, eventId, event: stored }) => [messageId, eventId, stored?.payload.toString()]).sort()).toEqual(
      event.targets
        .slice(1)
        .map(({ messageId }) => [messageId, event.id, event.payload.toString()])
        .sort(),
    );
    await settle(1, jobs.slice(0, 1), delivered);
    await settle(1, jobs.slice(1), dead);
    expect(await reader.event('org_a', event.id)).toMatchObject({ status: 'partial' });
    expect((await reader.events('org_a', {}, { limit: 10 })).items).toMatchObject([{ id: event.id, status: 'partial' }]);
    expect(await reader.deliveriesOfEvent('org_a', event.id)).toHaveLength(3);
    expect((await reader.deliveries('org_a', { statuses: ['dlq'] }, { limit: 10 })).items).toHaveLength(1);
    expect(await reader.eventCounters('org_a', 'src_a')).toMatchObject({ events: 1 });
  });

  test('an event for several shards whose accepting process died before it carried the rest is finished by a worker', async () => {
    const event = eventForShards([0, 1]);
    await acceptOnly(redis.client, prefix, event);
    expect(await take(1)).toEqual([]);
    expect(await queues[0]?.refreshShard('w1', 1000)).toMatchObject({ hasOutbox: false });
    const [[entry, fields] = ['', []]] = await redis.client.xrange(`${prefix}{s0}:out`, '-', '+');
    await redis.client.xdel(`${prefix}{s0}:out`, entry);
    const older = fields.map((value, i) => (fields[i - 1] === hashFields.outbox.sinceMs ? String(Number(value) - 3000) : value));
    await redis.client.xadd(`${prefix}{s0}:out`, '999999-1', ...older);
    expect(await queues[0]?.refreshShard('w1', 1000)).toMatchObject({ hasOutbox: true });
    await carrier.carry(0);
    expect(await take(1)).toMatchObject([{ messageId: event.targets[1]?.messageId, eventId: event.id }]);
  });

  test('an event for several shards shows the replay of a delivery in another shard', async () => {
    const event = eventForShards([0, 1]);
    await acceptOnly(redis.client, prefix, event);
    await carrier.carry(0);
    for (const shard of [0, 1]) await settle(shard, await take(shard), delivered);
    const replayer = new RedisMessageReplayer({ redis: redis.client, prefix, clock: systemClock, shards: () => shards });
    const replayed = await replayer.replay('org_a', event.targets[1]?.messageId ?? '');
    for (let i = 0; i < 2; i++) await carrier.carry(1);
    expect(await reader.event('org_a', event.id)).toMatchObject({ status: 'pending' });
    expect((await reader.deliveriesOfEvent('org_a', event.id)).map(({ id, replayedFrom }) => [id, replayedFrom])).toContainEqual([
      replayed,
      event.targets[1]?.messageId,
    ]);
    await settle(1, await take(1), delivered);
    expect(await reader.event('org_a', event.id)).toMatchObject({ status: 'delivered' });
  });

  test('an event for several shards is accepted once, however often it is sent', async () => {
    const event = eventForShards([0, 1]);
    for (let i = 0; i < 3; i++) {
      await acceptOnly(redis.client, prefix, event);
      await carrier.carry(0);
    }
    expect(await take(0)).toHaveLength(1);
    expect(await take(1)).toHaveLength(1);
  });

  test('an event for several shards keeps its record until the last message in any shard is gone', async () => {
    const event = eventForShards([0, 1]);
    await acceptOnly(redis.client, prefix, event);
    await carrier.carry(0);
    await settle(0, await take(0), delivered);
    while ((await queues[0]?.prune({ finishedMs: -1, deadLettersMs: -1 }))?.hasMore);
    expect(await reader.event('org_a', event.id)).toMatchObject({ status: 'pending' });
    await settle(1, await take(1), delivered);
    while ((await queues[1]?.prune({ finishedMs: -1, deadLettersMs: -1 }))?.hasMore);
    await carrier.carry(1);
    expect(await reader.event('org_a', event.id)).toBeNull();
  });
});

test('the messages of an event for a hundred targets are made at once, those for more ten at a time', async () => {
  await acceptOnly(redis.client, prefix, eventForShards(Array.from({ length: 100 }, () => 1)));
  expect((await queues[1]?.figures())?.unfinished).toBe(100);
  const event = eventForShards(Array.from({ length: 250 }, () => 0));
  await acceptOnly(redis.client, prefix, event);
  expect((await queues[0]?.figures())?.unfinished).toBe(0);
  expect(await reader.event('org_a', event.id)).toMatchObject({ status: 'pending' });
  expect(await redis.client.xlen(`${prefix}{s0}:out`)).toBe(25);
  await Promise.all([carrier.carry(0), new OutboxCarrier({ redis: redis.client, prefix }).carry(0)]);
  expect((await queues[0]?.figures())?.unfinished).toBe(250);
  expect(await reader.deliveriesOfEvent('org_a', event.id)).toHaveLength(250);
});

describe('what is carried', () => {
  const prune = async (shard: number): Promise<void> => {
    while ((await queues[shard]?.prune({ finishedMs: -1, deadLettersMs: -1 }))?.hasMore);
  };
  const entriesOf = async (shard: number): Promise<string[]> =>
    (await redis.client.xrange(`${prefix}{s${shard}}:out`, '-', '+')).map(([id]) => id);

  test('what is carried holds its event, also when all that has arrived is gone again', async () => {
    const event = eventForShards([0, ...Array.from({ length: 100 }, () => 1)]);
    await acceptOnly(redis.client, prefix, event);
    const [here = '', first = ''] = await entriesOf(0);
    await carrier.carryEntries(0, [here, first]);
    for (let jobs = await take(1); jobs.length > 0; jobs = await take(1)) await settle(1, jobs, delivered);
    await settle(0, await take(0), delivered);
    await prune(1);
    await carrier.carry(1);
    await prune(0);
    await carrier.carry(0);
    expect((await queues[1]?.figures())?.unfinished).toBe(90);
    const jobs = await take(1);
    expect(jobs[0]?.event?.payload.equals(event.payload)).toBe(true);
  });

  test('twice is made once, also when it is gone in between', async () => {
    const event = eventForShards([0, 1]);
    await acceptOnly(redis.client, prefix, event);
    const [[entry, fields] = ['', []]] = await redis.client.xrange(`${prefix}{s0}:out`, '-', '+');
    await carrier.carry(0);
    await settle(1, await take(1), delivered);
    await prune(1);
    await redis.client.del(`${prefix}{s0}:out`);
    await redis.client.xadd(`${prefix}{s0}:out`, entry, ...fields);
    await carrier.carry(0);
    expect(await take(1)).toEqual([]);
    await carrier.carry(1);
  });

  test('to a shard that is full waits there, and does not hold up the others', async () => {
    for (let i = 0; i < 70; i++) await acceptOnly(redis.client, prefix, eventForShards([0, 1]));
    const other = eventForShards([0, 2]);
    await acceptOnly(redis.client, prefix, other);
    await redis.client.hset(`${prefix}{s1}:ctl`, 'full', '1');
    await expect(carrier.carry(0)).rejects.toMatchObject({ code: 'UNAVAILABLE', message: 'shard 1 is full' });
    expect(await take(2)).toMatchObject([{ messageId: other.targets[1]?.messageId }]);
    expect(await take(1)).toEqual([]);
    await redis.client.hdel(`${prefix}{s1}:ctl`, 'full');
    await carrier.carry(0);
    expect((await queues[1]?.figures())?.unfinished).toBe(70);
  });

  test('to a target whose work stream is something else fails before anything is written', async () => {
    await acceptOnly(redis.client, prefix, eventForShards([1]));
    await settle(1, await take(1), delivered);
    await redis.client.set(`${prefix}{s1}:w:1`, 'not a stream');
    const event = eventForShards([0, 1]);
    await acceptOnly(redis.client, prefix, { ...event, targets: event.targets.map((target) => ({ ...target, routeId: 'rte_0' })) });
    await expect(carrier.carry(0)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await redis.client.del(`${prefix}{s1}:w:1`);
    await carrier.carry(0);
    expect(await take(1)).toMatchObject([{ messageId: event.targets[1]?.messageId }]);
  });
});

describe('a message that fails over to another shard', () => {
  const spare = { id: 'dst_spare', shard: 1 };

  /** Fails at its first destination and is in the outbox then. */
  async function failed(): Promise<NewEvent> {
    const event = eventForShards([0]);
    await acceptOnly(redis.client, prefix, event);
    await settle(0, await take(0, [spare]), dead);
    return event;
  }

  test('a message that fails over to another shard keeps its id, its attempts and where it came from', async () => {
    const event = await failed();
    const id = event.targets[0]?.messageId ?? '';
    expect(await reader.delivery('org_a', id)).toMatchObject({ status: 'pending', attempts: 1 });
    await carrier.carry(0);
    const jobs = await take(1);
    expect(jobs).toMatchObject([
      {
        messageId: id,
        eventId: event.id,
        attempts: 1,
        target: { destinationId: 'dst_spare' },
        failover: { originalDestinationId: 'dst_0', reason: 'max_retries_exceeded' },
      },
    ]);
    await settle(1, jobs, delivered);
    expect(await reader.delivery('org_a', id)).toMatchObject({ status: 'delivered', destinationId: 'dst_spare', failedOverFrom: 'dst_0' });
    expect(await reader.attempts('org_a', id)).toMatchObject([{ responseStatus: 500 }, { responseStatus: 200 }]);
    expect(await reader.event('org_a', event.id)).toMatchObject({ status: 'delivered' });
    for (const destinationId of ['dst_0', 'dst_spare']) {
      expect((await reader.deliveries('org_a', { destinationId }, { limit: 10 })).items).toMatchObject([{ id, status: 'delivered' }]);
    }
  });

  test('a message that fails over to another shard takes the output of its transform along, which counts to the bytes of the event there', async () => {
    const event = eventForShards([0]);
    await acceptOnly(redis.client, prefix, event);
    const jobs = await take(0, [spare]);
    const [job] = jobs;
    const output = { contentType: 'text/plain', body: Buffer.from('made') };
    if (job !== undefined) await queueOf(0).output(job, output);
    await settle(0, jobs, dead);
    await carrier.carry(0);
    expect((await checkShards({ redis: redis.client, prefix, shards })).findings).toEqual([]);
    const [moved] = await take(1);
    expect(moved).toMatchObject({ messageId: event.targets[0]?.messageId, hasOutput: true });
    if (moved !== undefined) expect(await queueOf(1).output(moved, null)).toEqual(output);
  });

  test('a message that fails over to another shard is not delivered twice when it is carried twice, even when it has ended and is gone', async () => {
    await failed();
    const [[, fields] = ['', []]] = await redis.client.xrange(`${prefix}{s0}:out`, '-', '+');
    const [entry = ''] = (await redis.client.xrange(`${prefix}{s0}:out`, '-', '+')).map(([id]) => id);
    await carrier.carry(0);
    await settle(1, await take(1), delivered);
    await redis.client.xadd(`${prefix}{s0}:out`, entry, ...fields);
    await carrier.carry(0);
    expect(await take(1)).toEqual([]);
    while ((await queues[1]?.prune({ finishedMs: -1, deadLettersMs: -1 }))?.hasMore);
    await redis.client.del(`${prefix}{s0}:out`);
    await redis.client.xadd(`${prefix}{s0}:out`, entry, ...fields);
    await carrier.carry(0);
    expect(await take(1)).toEqual([]);
    await carrier.carry(1);
  });

  test('a message that fails over to another shard is found where it is now, when news of an earlier move come late', async () => {
    const event = await failed();
    const key = event.targets[0]?.messageId.slice('msg_00'.length) ?? '';
    await carrier.carry(0);
    const news = new ShardScript(new URL('./shard-report.lua', import.meta.url));
    const tell = (shard: number, moves: number) =>
      news.run(redis.client, shardKeys(prefix, 0).declared, [namedArgument({ kind: 'u', id: key, shard, moves })]);
    expect(await tell(5, 2)).toBe(1);
    expect(await tell(1, 1)).toBe(0);
    expect(await redis.client.hget(`${prefix}{s0}:m:${key}`, hashFields.message.shard)).toBe('5');
    expect(await tell(1, 3)).toBe(1);
  });

  describe('where two shards each take the other for the better one', () => {
    const spareBase = `${prefix}{s1}:`;

    /** Both circuits are open. Returns what counts the moves of a message that begins in shard 0. */
    async function moving(): Promise<{ key: string; moves: () => Promise<number> }> {
      const to = (shard: number, destinationId: string): NewEvent => {
        const messageId = newTimedId('msg_', shard, Date.now());
        const targets = [{ messageId, routeId: 'rte_0', destinationId, shard, maxAttempts: 3 }];
        return newEvent({ id: newTimedId('evt_', shard, Date.now()), targets });
      };
      const others = ['1/dst_spare', '0/dst_0'];
      for (const [shard, destination] of ['dst_0', 'dst_spare'].entries()) {
        await acceptOnly(redis.client, prefix, to(shard, destination));
        await settle(shard, await take(shard), delivered);
        const { cooldownEndMs, circuitState, failoverTargets } = hashFields.target;
        const endMs = Date.now() + 60_000;
        const open = { [circuitState]: 'o', [cooldownEndMs]: endMs, [failoverTargets]: others[shard] ?? '' };
        await redis.client.hset(`${prefix}{s${shard}}:t:1`, open);
        await redis.client.zadd(`${prefix}{s${shard}}:waiting`, endMs, '!1');
      }
      const event = to(0, 'dst_0');
      await acceptOnly(redis.client, prefix, event);
      const key = event.targets[0]?.messageId.slice('msg_00'.length) ?? '';
      return { key, moves: async () => Number((await redis.client.hget(`${prefix}{s0}:m:${key}`, hashFields.message.moves)) ?? '0') };
    }

    async function round(): Promise<void> {
      for (const shard of [0, 1]) {
        expect(await take(shard)).toEqual([]);
        await carrier.carry(shard);
      }
    }

    test('comes back at once, and waits at its first destination', async () => {
      const { moves } = await moving();
      for (let k = 0; k < 5; k++) await round();
      expect(await moves()).toBe(2);
      expect((await queues[0]?.figures())?.unfinished).toBe(1);
    });

    test('stays where it is after eight moves, whatever it has recorded of those', async () => {
      const { key, moves } = await moving();
      for (let k = 0; k < 20; k++) {
        await round();
        // Both circuits look free to a message that has forgotten where it was.
        for (const id of [`${prefix}{s0}:m:${key}`, `${spareBase}m:${recordKey(recordId('msg_', 0, key), 1)}`])
          await redis.client.hdel(id, hashFields.message.left);
        await redis.client.hdel(`${prefix}{s0}:t:1`, hashFields.target.blockedBy);
        await redis.client.zadd(`${prefix}{s0}:ready:org_a`, 0, '1');
        await redis.client.zadd(`${prefix}{s0}:ready`, 0, 'org_a');
      }
      expect(await moves()).toBe(8);
      expect((await queues[0]?.figures())?.unfinished).toBe(1);
    });
  });

  test('a message that fails over to another shard goes with its organization', async () => {
    await failed();
    await carrier.carry(0);
    await new RedisMessagePurger({ redis: redis.client, prefix, shards }).purgeOrganization('org_a', new AbortController().signal);
    for (const shard of [0, 1, 2]) await carrier.carry(shard);
    const left = (await redis.client.keys(`${prefix}*`)).filter((key) => !/\}:(ctl|bell|seen:.*)$/.test(key));
    expect(left.filter((key) => !key.includes('circuits') && !key.endsWith(':l:dst_spare'))).toEqual([]);
  });
});
