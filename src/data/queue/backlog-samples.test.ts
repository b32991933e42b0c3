import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { newEvent } from '../../../test/support/new-event.ts';
import { failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { waitForPeriodStart } from '../../../test/support/wait-for-period-start.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { RedisMessageAcceptor } from './message-acceptor.ts';
import { RedisDeliveryQueue } from './redis-delivery-queue.ts';

const prefix = 'test:';
const base = `${prefix}{s0}:`;
let redis: RedisServer;
let queue: RedisDeliveryQueue;
beforeAll(async () => {
  redis = await startRedis();
  queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
});
afterAll(() => redis?.stop());
beforeEach(async () => {
  await waitForPeriodStart(300_000);
  await redis.client.flushall();
});

async function accept(org: string, destination: string, messages = 1): Promise<void> {
  const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: systemClock });
  for (let i = 0; i < messages; i++) await acceptor.accept(newEvent({ org, destinations: [destination] }));
}
const samplesOf = (org: string) => redis.client.hgetall(`${base}st:${org}:m${Math.floor(Date.now() / 300_000)}:b`);
const sampledBacklogs = async (org: string) =>
  Object.fromEntries(Object.entries(await samplesOf(org)).map(([name, value]) => [name, Number(value.split(' ')[0])]));

/** Repeats what resolves to whether there may be more. */
async function repeat(step: () => Promise<boolean>): Promise<void> {
  while (await step());
}

describe('a sample of the backlogs', () => {
  test('a sample of the backlogs is due once in five minutes, and taken by one worker', async () => {
    await accept('org_a', 'dst_a', 3);
    expect((await queue.refreshShard('w1', 1)).isSampleDue).toBe(true);
    await Promise.all(Array.from({ length: 5 }, () => queue.sampleBacklogs()));
    expect((await queue.refreshShard('w2', 1)).isSampleDue).toBe(false);
    expect(await samplesOf('')).toEqual({ n: '1' });
    expect(await sampledBacklogs('org_a')).toEqual({ '*': 3, '1': 3 });
    await redis.client.hset(`${base}ctl`, hashFields.control.sampledPeriod, '1');
    expect((await queue.refreshShard('w2', 1)).isSampleDue).toBe(true);
  });

  test('a sample of the backlogs has what is under way, what is to be tried again and what is paused', async () => {
    await accept('org_a', 'dst_a', 4);
    const jobs = await takeFrom(queue, 'w1', 2);
    await settleAll(queue, 'w1', jobs.slice(0, 1), { type: 'retry', attempt: failure, delayMs: 3_600_000 });
    await takeFrom(queue, 'w1', 64);
    await accept('org_b', 'dst_b', 2);
    await takeFrom(queue, 'w1', 64, { paused: true });
    expect(await redis.client.scard(`${base}paused`)).toBe(1);
    await queue.sampleBacklogs();
    expect((await sampledBacklogs('org_a'))['*']).toBe(4);
    expect((await sampledBacklogs('org_b'))['*']).toBe(2);
  });

  test('a sample of the backlogs keeps the 100 targets of an organization at which most waits, and the sum of all', async () => {
    for (let i = 0; i < 150; i++) await accept('org_a', `dst_${i}`, i % 15 === 0 ? 3 : 1);
    await queue.sampleBacklogs();
    const { '*': all, ...targets } = await sampledBacklogs('org_a');
    expect(all).toBe(170);
    expect(Object.keys(targets)).toHaveLength(100);
    expect(Object.values(targets).filter((each) => each === 3)).toHaveLength(10);
  });

  test('a sample of the backlogs reads 300 targets at most, and leaves no organization out for one with very many', async () => {
    for (let i = 0; i < 350; i++) await accept('org_a', `dst_${i}`);
    for (let i = 0; i < 5; i++) await accept(`org_b${i}`, `dst_b${i}`);
    await queue.sampleBacklogs();
    expect((await sampledBacklogs('org_a'))['*']).toBe(50);
    for (let i = 0; i < 5; i++) expect((await sampledBacklogs(`org_b${i}`))['*']).toBe(1);
  });

  test.each<[string, () => Promise<unknown>]>([
    ['for their setting', async () => repeat(async () => (await queue.dequeue('w1', 64)).unconfigured.length > 0)],
    [
      'for their retry',
      async () =>
        repeat(async () => {
          const jobs = await takeFrom(queue, 'w1', 64);
          await settleAll(queue, 'w1', jobs, { type: 'retry', attempt: failure, delayMs: 3_600_000 });
          return jobs.length > 0;
        }),
    ],
  ])('a sample of the backlogs finds a target that waits behind 400 of another organization %s', async (_, letWait) => {
    for (let i = 0; i < 400; i++) await accept('org_a', `dst_${i}`);
    await letWait();
    await accept('org_b', 'dst_b', 3);
    await letWait();
    await queue.sampleBacklogs();
    expect((await sampledBacklogs('org_b'))['*']).toBe(3);
    expect((await sampledBacklogs('org_a'))['*']).toBeGreaterThanOrEqual(150);
  });

  test('costs the same commands whatever has waited there for how long, and goes with its organization', async () => {
    const commandsOf = async (): Promise<number> => {
      await redis.client.hdel(`${base}ctl`, hashFields.control.sampledPeriod);
      await redis.client.config('RESETSTAT');
      await queue.sampleBacklogs();
      const stats = await redis.client.info('commandstats');
      return [...stats.matchAll(/calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
    };
    await accept('org_a', 'dst_a', 2);
    await queue.sampleBacklogs();
    const [few, bytesOfFew] = [
      await commandsOf(),
      await redis.client.memory('USAGE', `${base}st:org_a:m${Math.floor(Date.now() / 300_000)}:b`),
    ];
    await accept('org_a', 'dst_a', 500);
    expect(await commandsOf()).toBe(few);
    expect(await redis.client.memory('USAGE', `${base}st:org_a:m${Math.floor(Date.now() / 300_000)}:b`)).toBe(bytesOfFew);
    await new RedisMessagePurger({ redis: redis.client, prefix }).purgeOrganization('org_a', new AbortController().signal);
    expect((await redis.client.keys(`${base}st:org_a:*`)).filter((key) => key.endsWith(':b'))).toEqual([]);
  });
});
