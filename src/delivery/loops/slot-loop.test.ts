import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { cronKeys } from '../../data/cron/cron-keys.ts';
import { CronDoorbell } from '../../data/cron/cron-runs.ts';
import { taskKeys } from '../../data/tasks/task-kind.ts';
import { TaskQueue } from '../../data/tasks/task-queue.ts';
import { blockingConnection, type RedisClient } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { RedisBackoffs } from './redis-backoff.ts';
import { SlotLoop, type SlotLoopOptions } from './slot-loop.ts';

const prefix = 'test:';
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(() => redis.client.flushall());

type Bell = SlotLoopOptions<{ org: string }>['bell'];
const bells: [what: string, key: string, make: (blocking: RedisClient) => Bell][] = [
  ['tasks', taskKeys(prefix).bell, (blocking) => new TaskQueue({ redis: redis.client, blocking, prefix })],
  ['cron jobs', cronKeys(prefix).bell, (blocking) => new CronDoorbell({ redis: redis.client, blocking, prefix })],
];

test.each(bells)('a ring for %s that a loop takes while it stops wakes another one', async (_, key, make) => {
  const bell = make(blockingConnection(redis.url, { blockMs: 30_000 }));
  let takes = 0;
  const stopped = Promise.withResolvers<void>();
  const loop: SlotLoop<{ org: string }> = new SlotLoop({
    slots: 4,
    slotsOfOrganization: 4,
    bell: {
      wait: async () => {
        await bell.wait();
        void loop.stop(0).then(stopped.resolve, stopped.reject);
      },
      ring: () => bell.ring(),
      close: () => bell.close(),
    },
    take: async () => {
      takes++;
      return { items: [], hasMore: false };
    },
    run: async () => undefined,
    worker: 'w1',
    clock: systemClock,
    backoff: new RedisBackoffs(silentLogger).watch(),
  });
  loop.start();
  await eventually(() => expect(takes).toBe(1));
  await redis.client.rpush(key, 1);
  await stopped.promise;
  expect(takes).toBe(1);
  expect(await redis.client.llen(key)).toBe(1);
});
