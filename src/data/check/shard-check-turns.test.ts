import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { dead, failure, settleAll, takeFrom } from '../../../test/support/queue-worker.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { targetSetting } from '../../../test/support/target-setting.ts';
import { OrganizationPools } from '../pools/organization-pools.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../queue/redis-delivery-queue.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { checkShards } from './shard-check.ts';

const prefix = 'test:';
const base = `${prefix}{s0}:`;
const hourMs = 3_600_000;
const throttle = { mode: 'off', rateLimit: null, rateUnit: null, maxConcurrency: null, queueLimit: null } as const;
let redis: RedisServer;
let queue: RedisDeliveryQueue;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
  await queue.refreshShard('w1', 64);
});

/** The messages of one target. */
async function accept(count: number): Promise<string[]> {
  const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
  const events = Array.from({ length: count }, () => newEvent());
  for (const event of events) await acceptor.accept(event);
  return events.flatMap(({ targets }) => targets.map(({ messageId }) => messageId));
}

const findings = async () => (await checkShards({ redis: redis.client, prefix })).findings;
const blockedBy = () => redis.client.hget(`${base}t:1`, hashFields.target.blockedBy);

interface Obstacle {
  name: string;
  /** The field `b` of the target. */
  blocked: string | null;
  /** Puts the obstacle before the target, which has twelve messages; at least one of them stays queued. */
  begin: () => Promise<unknown>;
  /** Lets it wait for nothing. */
  strand: () => Promise<unknown>;
  complaint: string;
}

const obstacles: Obstacle[] = [
  {
    name: 'is ready',
    blocked: null,
    begin: async () => {},
    strand: () => redis.client.zrem(`${base}ready:org_a`, '1'),
    complaint: 'is not ready, and nothing blocks it',
  },
  {
    name: 'is ready in an organization with a turn',
    blocked: null,
    begin: async () => {},
    strand: () => redis.client.zrem(`${base}ready`, 'org_a'),
    complaint: 'is ready, but its organization has no turn',
  },
  {
    name: 'is ready in an organization of another pool',
    blocked: null,
    begin: () => new OrganizationPools({ redis: redis.client, prefix, shards: 1 }).assign('org_a', 'blue'),
    strand: () => redis.client.zrem(`${base}ready@blue`, 'org_a'),
    complaint: 'is ready, but its organization has no turn',
  },
  {
    name: 'is ready in an organization that a release without pools has put into the default one',
    blocked: null,
    begin: async () => {
      await new OrganizationPools({ redis: redis.client, prefix, shards: 1 }).assign('org_a', 'blue');
      await redis.client.rename(`${base}ready@blue`, `${base}ready`);
    },
    strand: () => redis.client.del(`${base}ready`),
    complaint: 'is ready, but its organization has no turn',
  },
  {
    name: 'has no setting yet',
    blocked: '?1',
    begin: () => queue.dequeue('w1', 1),
    strand: () => redis.client.zrem(`${base}waiting`, '?1'),
    complaint: 'waits for ?1, which does not wake it',
  },
  {
    name: 'is at its cap',
    blocked: 'cap',
    begin: async () => {
      expect(await takeFrom(queue, 'w1', 64)).toHaveLength(8);
    },
    strand: async () => {
      await settleAll(queue, 'w1', await queue.adopt('w1', []), dead);
      await redis.client.zrem(`${base}ready:org_a`, '1');
      await redis.client.hset(`${base}t:1`, hashFields.target.blockedBy, 'cap');
    },
    complaint: 'is at its cap, and has no work under way',
  },
  {
    name: 'waits for its circuit',
    blocked: '!',
    begin: async () => {
      const circuit = { failureThreshold: 1, cooldownSeconds: 3600, probeSuccessThreshold: 1 };
      const jobs = await takeFrom(queue, 'w1', 1, { circuit });
      await settleAll(queue, 'w1', jobs, { type: 'retry', attempt: failure, delayMs: hourMs });
      expect(await takeFrom(queue, 'w1', 1)).toEqual([]);
    },
    strand: () => redis.client.zrem(`${base}waiting`, '!1'),
    complaint: 'waits for its circuit, which has no end of a cooldown',
  },
  {
    name: 'waits under its limiter',
    blocked: 'dst_a',
    begin: async () => {
      await takeFrom(queue, 'w1', 1, { throttle: { ...throttle, mode: 'rate', rateLimit: 1, rateUnit: 'hour' } });
      expect(await takeFrom(queue, 'w1', 1)).toEqual([]);
    },
    strand: () => redis.client.del(`${base}wait:dst_a`),
    complaint: 'waits for dst_a, which does not wake it',
  },
  {
    name: 'waits under a limiter that it shares',
    blocked: 'app_a',
    begin: async () => {
      await takeFrom(queue, 'w1', 1, { sharedLimiter: { id: 'app_a', revision: 1, windows: [{ ms: hourMs, most: 1 }] } });
      expect(await takeFrom(queue, 'w1', 1)).toEqual([]);
    },
    strand: () => redis.client.zrem(`${base}waiting`, 'app_a'),
    complaint: 'waits for app_a, which does not wake it',
  },
  {
    name: 'waits among the slow ones',
    blocked: '~slow',
    begin: async () => {
      expect(await takeFrom(queue, 'w1', 1)).toHaveLength(1);
      expect((await queue.dequeue('w1', 1, { slots: 1, held: 1, byAccount: new Map() })).jobs).toEqual([]);
    },
    strand: () => redis.client.zrem(`${base}waiting`, '~slow'),
    complaint: 'waits for ~slow, which does not wake it',
  },
  {
    name: 'gathers a batch',
    blocked: '~b1',
    begin: async () => {
      expect(await takeFrom(queue, 'w1', 1, { batch: { layout: '{}', records: 1000, bytes: 1_000_000, ageMs: hourMs } })).toEqual([]);
      expect(await takeFrom(queue, 'w1', 1)).toEqual([]);
    },
    strand: () => redis.client.zrem(`${base}waiting`, '~b1'),
    complaint: 'waits for ~b1, which does not wake it',
  },
  {
    name: 'is paused',
    blocked: null,
    begin: async () => {
      for (const target of (await queue.targets(1)).targets) await queue.configure(target, targetSetting({ paused: true }));
    },
    strand: () => redis.client.hdel(`${base}t:1`, hashFields.target.pausedSinceMs),
    complaint: 'is not ready, and nothing blocks it',
  },
];

describe('messages of a target that', () => {
  test.each(obstacles)(
    '$name are no finding, and are one when it will never come to its turn',
    async ({ blocked, begin, strand, complaint }) => {
      const ids = await accept(12);
      await begin();
      expect(await blockedBy()).toBe(blocked);
      expect(await findings()).toEqual([]);
      await strand();
      const [finding, ...others] = await findings();
      expect(finding).toEqual({
        id: expect.stringMatching(/^msg_/),
        complaint: `is queued, and no worker will dequeue it: target 1 ${complaint}`,
      });
      expect(others).toEqual([]);
      expect(ids).toContain(finding?.id);
    },
  );

  test('messages of a target that is gone are a finding', async () => {
    const [first] = await accept(2);
    await redis.client.del(`${base}t:1`);
    expect(await findings()).toEqual([{ id: first, complaint: 'is queued, and no worker will dequeue it: target 1 is gone' }]);
  });

  test('messages of a target that has nothing queued are no finding, although nothing lets it come to its turn', async () => {
    await accept(1);
    expect(await takeFrom(queue, 'w1', 1)).toHaveLength(1);
    expect(await redis.client.exists(`${base}ready`)).toBe(0);
    expect(await findings()).toEqual([]);
  });

  test('messages of a target that is at its cap are no finding when the group of its stream was made again while they are held', async () => {
    await accept(12);
    const held = await takeFrom(queue, 'w1', 64);
    expect(await blockedBy()).toBe('cap');
    await redis.client.xgroup('DESTROY', `${base}w:1`, 'g');
    await redis.client.xgroup('CREATE', `${base}w:1`, 'g', held.at(-1)?.handle.split('/')[1] ?? '');
    expect(await findings()).toEqual([]);
  });
});
