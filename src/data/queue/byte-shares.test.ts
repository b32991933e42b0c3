import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { delivered, settleAll, settleEverything, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { alertOrganization } from '../../core/alert.ts';
import { newTimedId } from '../../core/ids.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { RedisMessageCanceller } from '../history/message-canceller.ts';
import { RedisMessageReplayer } from '../history/message-replayer.ts';
import type { NewEvent } from '../shard/messages.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ByteShares, divideBytes, type ShardBytes } from './byte-shares.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const bytesOf = (accounts: Record<string, number>): ShardBytes => ({
  total: Object.values(accounts).reduce((sum, each) => sum + each, 0),
  accounts: new Map(Object.entries(accounts)),
});

describe('the bytes of a server with a limit of 1000', () => {
  const division = (shards: Record<string, number>[], refused: string[] = []) => divideBytes(1000, shards.map(bytesOf), new Set(refused));

  test('the bytes of a server with a limit of 1000 are free to every account while all together have less than 40 %', () => {
    expect(division([{ a: 399 }]).over).toEqual([]);
    expect(division([{ a: 200, b: 150 }, { a: 49 }]).over).toEqual([]);
  });

  test('the bytes of a server with a limit of 1000 are refused above that to those that have more than their share of the 40 %, wherever they have it', () => {
    expect(division([{ a: 400 }]).over).toEqual([]);
    expect(division([{ a: 401 }]).over).toEqual(['a']);
    expect(division([{ a: 399, b: 1 }]).over).toEqual(['a']);
    expect(division([{ a: 150, b: 199 }, { a: 60 }]).over).toEqual(['a']);
    expect(division([{ a: 201, b: 201, c: 10 }]).over).toEqual(['a', 'b']);
  });

  test('the bytes of a server with a limit of 1000 are left to the others by accounts that have little, so that those do not shrink the share of the others', () => {
    expect(division([{ a: 250, b: 140, c: 11 }]).over).toEqual(['a']);
    expect(division([{ a: 300, b: 139, ...Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`tiny_${i}`, 1])) }]).over).toEqual([
      'a',
    ]);
    expect(division([{ a: 180, b: 180, c: 41 }]).over).toEqual(['a', 'b']);
    expect(division([{ a: 200, b: 200 }]).over).toEqual([]);
  });

  test('the bytes of a server with a limit of 1000 are never refused to an account that has no more than its equal part of the 40 %', () => {
    for (const held of [1, 20, 50, 100]) expect(division([{ a: 400, b: 300, c: 250, d: held }]).over).not.toContain('d');
  });

  test('the bytes of a server with a limit of 1000 are refused until all together have less than 35 %, or the account has less than seven eighths of its share', () => {
    expect(division([{ a: 350 }], ['a']).over).toEqual([]);
    expect(division([{ a: 349, b: 11 }], ['a']).over).toEqual(['a']);
    expect(division([{ a: 349 }], ['a']).over).toEqual([]);
    expect(division([{ a: 176, b: 190 }], ['a']).over).toEqual(['a']);
    expect(division([{ a: 174, b: 190 }], ['a']).over).toEqual([]);
  });

  test('the bytes of a server with a limit of 1000 are leased to the shards so that they do not go beyond 40 % together before the next refresh, or only by a thirty-second', () => {
    expect(division([{ a: 100 }, { b: 100 }]).leases).toEqual([200, 200]);
    expect(division([{ a: 300 }, {}]).leases).toEqual([350, 50]);
    expect(division([{ a: 400 }, { b: 64 }]).leases).toEqual([406, 70]);
  });
});

describe('accounts that keep no details of attempts', () => {
  test.each<[Record<string, number>[], string[]]>([
    [[{ a: 239 }], []],
    [[{ a: 240 }], ['a']],
    [[{ a: 100 }, { a: 140 }], ['a']],
    [[{ a: 230, b: 10 }], ['a']],
    [[{ a: 150, b: 150 }], ['a', 'b']],
    [[{ a: 300, b: 20, c: 20 }], ['a']],
  ])('of %j with a limit of 1000, of which all may have 400, they are %j', (shards, expected) => {
    expect(divideBytes(1000, shards.map(bytesOf), new Set()).lean).toEqual(expected);
  });
});

describe('with Redis', () => {
  const prefix = 'test:';
  const memoryLimitBytes = 1_000_000;
  let redis: RedisServer;
  let acceptor: RedisMessageAcceptor;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());
  beforeEach(async () => {
    await redis.client.flushall();
    acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock, shards: () => 4, memoryLimitBytes });
  });

  const eventOf = (org: string, { bytes = 20_000, shard = 0 } = {}): NewEvent => {
    const targets = [{ messageId: newTimedId('msg_', shard, Date.now()), routeId: 'rte_a', destinationId: 'dst_a', shard, maxAttempts: 3 }];
    return { ...newEvent({ id: newTimedId('evt_', shard, Date.now()), targets }), org, payload: Buffer.alloc(bytes, 'x') };
  };
  const outcomes = async (events: readonly NewEvent[]): Promise<(string | boolean)[]> =>
    await Promise.all(events.map((event) => acceptor.accept(event).catch((error: { code: string }) => error.code)));
  const figures = () => new ByteShares({ redis: redis.client, prefix, clock: lenientClock, shards: () => 4, memoryLimitBytes }).figures();

  test('an account is refused once it has its share, event by event, whatever shards they go to, and others in the same call are taken', async () => {
    const many = Array.from({ length: 80 }, (_, i) => [
      eventOf('org_a', { shard: i % 4 }),
      ...(i % 20 === 0 ? [eventOf('org_b')] : []),
    ]).flat();
    const said = await outcomes(many);
    expect(new Set(said)).toEqual(new Set([true, 'QUEUE_FULL']));
    for (const [i, event] of many.entries()) if (event.org === 'org_b') expect(said[i]).toBe(true);
    const { byAccount, over } = await figures();
    expect(byAccount.get('org_a')).toBeGreaterThan(300_000);
    expect(byAccount.get('org_a')).toBeLessThan(480_000);
    expect(over).toBe(1);
  });

  test('messages that wait for their time count from their acceptance on, until they are cancelled', async () => {
    const notBeforeMs = Date.now() + 7 * 86_400_000;
    const scheduled = Array.from({ length: 30 }, (_, i) => {
      const event = eventOf('org_a', { shard: i % 4 });
      return { ...event, notBeforeMs, targets: event.targets.map((target) => ({ ...target, notBeforeMs })) };
    });
    const said = await outcomes(scheduled);
    expect(new Set(said)).toEqual(new Set([true, 'QUEUE_FULL']));
    expect(await outcomes([eventOf('org_a'), eventOf('org_b')])).toEqual(['QUEUE_FULL', true]);
    const held = await figures();
    expect(held.byAccount.get('org_a')).toBeGreaterThan(300_000);
    expect(held.over).toBe(1);
    const canceller = new RedisMessageCanceller({ redis: redis.client, prefix, shards: () => 4 });
    const stored = scheduled.filter((_, i) => said[i] === true).flatMap(({ targets }) => targets.map(({ messageId }) => messageId));
    expect(new Set((await canceller.cancel('org_a', stored, 'ann')).values())).toEqual(new Set(['cancelled']));
    const freed = await figures();
    expect([freed.byAccount.get('org_a'), freed.over]).toEqual([undefined, 0]);
  });

  test('webhooks count to the account of their organization and are refused with it; its alerts are counted, and taken', async () => {
    await outcomes(Array.from({ length: 30 }, () => eventOf('org_a')));
    const [webhook, alert, other] = [eventOf(webhookOrganization('org_a')), eventOf(alertOrganization('org_a')), eventOf('org_b')];
    expect(await outcomes([webhook, alert, other])).toEqual(['QUEUE_FULL', true, true]);
    expect([...(await figures()).byAccount.keys()].sort()).toEqual(['org_a', 'org_b']);
  });

  test('what is refused is not stored, and taken when it is sent again after the account has less; what is stored is not refused when it is sent again', async () => {
    const events = Array.from({ length: 30 }, () => eventOf('org_a'));
    const said = await outcomes(events);
    const stored = events[said.indexOf(true)] as NewEvent;
    const refused = events[said.indexOf('QUEUE_FULL')] as NewEvent;
    expect(await redis.client.exists(shardKeys(prefix, 0).event(refused.id.slice(6)))).toBe(0);
    expect(await outcomes([stored, refused])).toEqual([false, 'QUEUE_FULL']);
    const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
    await queue.refreshShard('w1', 64);
    await settleEverything(queue, 'w1');
    expect((await figures()).byAccount.size).toBe(0);
    await new Promise((resolve) => setTimeout(resolve, 1100));
    expect(await outcomes([refused])).toEqual([true]);
  });

  test('a shard stores which accounts keep no details of attempts, and below how many bytes they do again', async () => {
    await outcomes(Array.from({ length: 10 }, () => eventOf('org_a')));
    expect(await redis.client.hget(shardKeys(prefix, 0).declared[0], 'lean')).toBeNull();
    await outcomes(Array.from({ length: 10 }, () => eventOf('org_a')));
    const said = (await redis.client.hget(shardKeys(prefix, 0).declared[0], 'lean')) ?? '';
    expect(said).toMatch(/^\d+ org_a$/);
    expect(Number.parseInt(said, 10)).toBeLessThan(Number(await redis.client.hget(`${prefix}{s0}:ub`, '*')));
  });

  test('an event that was accepted twice counts once', async () => {
    const event = eventOf('org_a');
    await outcomes([event, event]);
    const once = (await figures()).byAccount.get('org_a');
    await outcomes([event]);
    expect((await figures()).byAccount.get('org_a')).toBe(once);
    expect(once).toBeLessThan(21_500);
  });

  test('a replay of an account over its share is refused before anything is begun', async () => {
    const first = eventOf('org_a');
    await outcomes([first]);
    const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
    await queue.refreshShard('w1', 64);
    await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 1), delivered);
    await outcomes(Array.from({ length: 30 }, () => eventOf('org_a')));
    const replayer = new RedisMessageReplayer({ redis: redis.client, prefix, clock: lenientClock, shards: () => 4, memoryLimitBytes });
    await expect(replayer.replay('org_a', first.targets[0]?.messageId ?? '')).rejects.toMatchObject({ code: 'QUEUE_FULL' });
  });

  test('a replay is taken again once the account has less, though nothing was accepted since', async () => {
    const events = Array.from({ length: 31 }, () => eventOf('org_a'));
    const said = await outcomes(events);
    expect(said).toContain('QUEUE_FULL');
    const message = events[said.indexOf(true)]?.targets[0]?.messageId ?? '';
    const replayer = new RedisMessageReplayer({ redis: redis.client, prefix, clock: lenientClock, shards: () => 4, memoryLimitBytes });
    const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
    await queue.refreshShard('w1', 64);
    await settleEverything(queue, 'w1');
    expect(await redis.client.hget(shardKeys(prefix, 0).declared[0], 'over')).toBe('org_a');
    await expect(replayer.replay('org_a', message)).resolves.toMatch(/^msg_/);
    expect((await figures()).over).toBe(0);
  });

  test('the number of refused accounts is that of now, though nothing was accepted since', async () => {
    await outcomes(Array.from({ length: 30 }, () => eventOf('org_a')));
    expect((await figures()).over).toBe(1);
    const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
    await queue.refreshShard('w1', 64);
    await settleEverything(queue, 'w1');
    expect((await figures()).over).toBe(0);
  });

  test('no account is refused without a limit of memory', async () => {
    acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
    expect(new Set(await outcomes(Array.from({ length: 60 }, () => eventOf('org_a'))))).toEqual(new Set([true]));
  });
});
