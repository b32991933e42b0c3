import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { acceptOnly } from '../../../test/support/accept-only.ts';
import { allPages } from '../../../test/support/all-pages.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { eventForShards, newEvent } from '../../../test/support/new-event.ts';
import { settleEverything } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newTimedId } from '../../core/ids.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessageReader } from '../history/message-reader.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { NewEvent } from '../shard/messages.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { acceptArguments } from './accept-batch.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';
import { OutboxCarrier } from './outbox-carrier.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const base = `${prefix}{s0}:`;
const outbox = `${base}out`;
const perEntry = 20;

let redis: RedisServer;
let queue: RedisDeliveryQueue;
let carrier: OutboxCarrier;
let reader: RedisMessageReader;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  carrier = new OutboxCarrier({ redis: redis.client, prefix });
  reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => 1 });
  await queue.refreshShard('w1', 1000);
});
const check = () => checkShards({ redis: redis.client, prefix });
afterEach(async () => {
  expect((await check()).findings).toEqual([]);
});

/** Lines, quotes, backslashes and characters of several bytes. */
const reasonOf = (i: number): string => `payload/a "${i}"\n\\u0041 ☃\u0001`;

function breaking(count: number, changes: Partial<NewEvent> = {}): NewEvent {
  const invalid = Array.from({ length: count }, (_, i) => ({
    messageId: newTimedId('msg_', 0, Date.now()),
    routeId: `rte_${i}`,
    brokenSchema: reasonOf(i),
    ...(i === 0 && { failedFor: 'dst_a' }),
  }));
  return newEvent({ targets: [], invalid, ...changes });
}

async function callsOf(command: string): Promise<number> {
  const found = new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await redis.client.info('commandstats'));
  return Number(found?.[1] ?? 0);
}

const entriesOf = async (): Promise<string[]> => (await redis.client.xrange(outbox, '-', '+')).map(([id]) => id);

/** How many messages that ended unsent are counted for routes. */
async function countedUnsent(): Promise<number> {
  let sum = 0;
  for (const name of await redis.client.smembers(`${base}st:org_a:t`))
    for (const [field, count] of Object.entries(await redis.client.hgetall(`${base}st:org_a:t${name}`)))
      if (field.endsWith(` ${hashFields.tally.unsent}`)) sum += Number(count);
  return sum;
}

/** All that is kept of an event whose messages are all made. */
async function expectAllOf(event: NewEvent): Promise<void> {
  const { invalid } = event;
  const wanted = invalid.map(({ messageId, routeId, brokenSchema }) => [messageId, routeId, 'schema_failed', brokenSchema]).sort();
  const failed = await allPages((page) => reader.deliveries('org_a', { statuses: ['schema_failed'] }, page), 100);
  expect(failed.map(({ id, routeId, status, lastErrorMessage }) => [id, routeId, status, lastErrorMessage]).sort()).toEqual(wanted);
  expect(await reader.event('org_a', event.id)).toMatchObject({ status: 'failed' });
  for (const { messageId, routeId } of [...invalid.slice(0, 1), ...invalid.slice(-1)]) {
    expect((await reader.deliveries('org_a', { routeId }, { limit: 10 })).items.map(({ id }) => id)).toEqual([messageId]);
    expect(await redis.client.zcard(`${base}i:fail:${routeId}`)).toBe(1);
  }
  expect(await redis.client.zcard(`${base}i:bad:org_a`)).toBe(invalid.length);
  expect(await redis.client.xlen(`${base}fin`)).toBe(invalid.length);
  expect(await redis.client.xlen(`${base}ends`)).toBe(1);
  expect(await countedUnsent()).toBe(invalid.length);
  expect(await redis.client.hlen(`${base}ue`)).toBe(0);
  expect(await redis.client.exists(outbox)).toBe(0);
}

test('an event that breaks a hundred schemas has its messages at once', async () => {
  const event = breaking(100);
  expect(acceptArguments(event, 0).weight).toBe(101);
  await acceptOnly(redis.client, prefix, event);
  await expectAllOf(event);
});

test.each([101, 3000])('an event that breaks %i schemas has its messages through the outbox', async (count) => {
  const event = breaking(count);
  const entries = Math.ceil(count / perEntry);
  expect(acceptArguments(event, 0).weight).toBe(1 + entries);
  await acceptOnly(redis.client, prefix, event);
  expect(await entriesOf()).toHaveLength(entries);
  expect(await reader.deliveriesOfEvent('org_a', event.id)).toEqual([]);
  expect(await reader.event('org_a', event.id)).toMatchObject({ status: 'pending' });
  expect(await check()).toEqual({ messages: count, unfinished: count, findings: [] });
  const [first = ''] = await entriesOf();
  await carrier.carryEntries(0, [first]);
  expect(await reader.deliveriesOfEvent('org_a', event.id)).toHaveLength(perEntry);
  expect(await reader.event('org_a', event.id)).toMatchObject({ status: 'pending' });
  expect(await check()).toEqual({ messages: count, unfinished: count - perEntry, findings: [] });
  await Promise.all([carrier.carry(0), new OutboxCarrier({ redis: redis.client, prefix }).carry(0)]);
  await expectAllOf(event);
  expect(await check()).toEqual({ messages: count, unfinished: 0, findings: [] });
});

test('no script writes more than twenty records of an event that breaks thousands of schemas', async () => {
  await redis.client.config('RESETSTAT');
  await acceptOnly(redis.client, prefix, breaking(3000));
  // Those of the event itself.
  expect(await callsOf('hset')).toBeLessThan(10);
  expect(await callsOf('xadd')).toBe(3000 / perEntry);
  const [first = ''] = await entriesOf();
  await redis.client.config('RESETSTAT');
  await carrier.carryEntries(0, [first]);
  // A record, the number and the target of each, and a few counters.
  expect(await callsOf('hset')).toBeLessThan(4 * perEntry);
  expect((await redis.client.keys(`${base}m:*`)).length).toBe(perEntry);
});

test('the process that accepts an event that breaks many schemas makes its messages', async () => {
  const event = breaking(150);
  expect(await new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock }).accept(event)).toBe(true);
  await eventually('the outbox to be empty', 30_000, async () => (await redis.client.exists(outbox)) === 0);
  await expectAllOf(event);
});

test('an event that breaks many schemas, is filtered by a route and has targets ends as each of them', async () => {
  const { targets } = eventForShards(Array.from({ length: 3 }, () => 0));
  const event = breaking(101, { targets, filtered: [{ routeId: 'rte_f' }] });
  await acceptOnly(redis.client, prefix, event);
  expect((await queue.figures()).unfinished).toBe(3);
  await settleEverything(queue, 'w1');
  expect(await reader.event('org_a', event.id)).toMatchObject({ status: 'pending' });
  await carrier.carry(0);
  expect(await reader.event('org_a', event.id)).toMatchObject({ status: 'partial' });
  expect(await reader.deliveriesOfEvent('org_a', event.id)).toHaveLength(105);
});

test('an event that breaks many schemas and has many targets has all messages through the outbox', async () => {
  const { targets } = eventForShards(Array.from({ length: 150 }, () => 0));
  const event = breaking(150, { targets });
  await acceptOnly(redis.client, prefix, event);
  expect(await entriesOf()).toHaveLength(15 + 8);
  await carrier.carry(0);
  await settleEverything(queue, 'w1');
  expect(await reader.event('org_a', event.id)).toMatchObject({ status: 'partial' });
  expect(await reader.deliveriesOfEvent('org_a', event.id)).toHaveLength(300);
  expect(await reader.eventCounters('org_a', 'src_a')).toMatchObject({ events: 1 });
  expect(await redis.client.hlen(`${base}ue`)).toBe(0);
});

describe('entries of broken schemas', () => {
  test('whose accepting process died are carried by a worker', async () => {
    const event = breaking(101);
    await acceptOnly(redis.client, prefix, event);
    expect(await queue.refreshShard('w1', 1000)).toMatchObject({ hasOutbox: false });
    const [[entry, fields] = ['', []]] = await redis.client.xrange(outbox, '-', '+');
    await redis.client.xdel(outbox, entry);
    const older = fields.map((value, i) => (fields[i - 1] === hashFields.outbox.sinceMs ? String(Number(value) - 3000) : value));
    const others = await redis.client.xrange(outbox, '-', '+');
    await redis.client.del(outbox);
    for (const [i, each] of [older, ...others.map(([, other]) => other)].entries())
      await redis.client.xadd(outbox, `${999_000 + i}-1`, ...each);
    expect(await queue.refreshShard('w1', 1000)).toMatchObject({ hasOutbox: true });
    await carrier.carry(0);
    await expectAllOf(event);
  });

  test('that are carried again make nothing again', async () => {
    const event = breaking(101);
    await acceptOnly(redis.client, prefix, event);
    const before = await redis.client.xrange(outbox, '-', '+');
    await carrier.carry(0);
    for (const [id, fields] of before) await redis.client.xadd(outbox, id, ...fields);
    await carrier.carry(0);
    await expectAllOf(event);
  });

  test('wait while their shard is full', async () => {
    const event = breaking(101);
    await acceptOnly(redis.client, prefix, event);
    await redis.client.hset(`${base}ctl`, hashFields.control.full, '1');
    await expect(carrier.carry(0)).rejects.toMatchObject({ code: 'UNAVAILABLE', message: 'shard 0 is full' });
    expect(await entriesOf()).toHaveLength(6);
    await redis.client.hdel(`${base}ctl`, hashFields.control.full);
    await carrier.carry(0);
    await expectAllOf(event);
  });

  test('hold their event when those before them are pruned, and nothing stays after them', async () => {
    const event = breaking(101);
    await acceptOnly(redis.client, prefix, event);
    const prune = async (): Promise<void> => {
      while ((await queue.prune({ finishedMs: -1, deadLettersMs: -1 })).hasMore);
    };
    const [first = ''] = await entriesOf();
    await carrier.carryEntries(0, [first]);
    await prune();
    expect(await redis.client.keys(`${base}m:*`)).toEqual([]);
    expect(await reader.event('org_a', event.id)).toMatchObject({ status: 'pending' });
    expect((await check()).findings).toEqual([]);
    await carrier.carry(0);
    expect(await reader.deliveriesOfEvent('org_a', event.id)).toHaveLength(81);
    await prune();
    expect(await reader.event('org_a', event.id)).toBeNull();
    const ofEvents = /\}:([emx]:.*|refs|far|ue|ub|fb|fin|out|i:.*)$/;
    expect((await redis.client.keys(`${prefix}*`)).filter((key) => ofEvents.test(key))).toEqual([]);
  });

  test('make nothing of an organization that was purged meanwhile', async () => {
    await acceptOnly(redis.client, prefix, breaking(101));
    const [first = ''] = await entriesOf();
    await carrier.carryEntries(0, [first]);
    await redis.client.del(`${base}ends`);
    await new RedisMessagePurger({ redis: redis.client, prefix, shards: 1 }).purgeOrganization('org_a', new AbortController().signal);
    expect(await entriesOf()).toHaveLength(5);
    await carrier.carry(0);
    expect(
      (await redis.client.keys(`${prefix}*`)).filter((key) => !shardKeys(prefix, 0).declared.includes(key) && !/\}:bell$/.test(key)),
    ).toEqual([]);
  });
});

test('an entry of the outbox of a later release stays, and holds up no other', async () => {
  const { shard, sinceMs, kind, event: eventField } = hashFields.outbox;
  await redis.client.xadd(outbox, '1-1', shard, '-', sinceMs, '1', kind, 'later', 'later', 'known');
  await redis.client.xadd(outbox, '1-2', shard, '0', sinceMs, '1', kind, 'later', eventField, 'known');
  const event = breaking(101);
  await acceptOnly(redis.client, prefix, event);
  await carrier.carry(0);
  expect(await reader.deliveriesOfEvent('org_a', event.id)).toHaveLength(101);
  expect(await entriesOf()).toEqual(['1-1', '1-2']);
});
