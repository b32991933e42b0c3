import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Counter } from 'prom-client';
import { z } from 'zod';
import { eventually } from '../../../test/support/eventually.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { RedisWorkerDirectory } from '../../data/membership/worker-directory.ts';
import { RedisTaskCaller } from '../../data/tasks/task-caller.ts';
import { type TaskKind, taskKeys } from '../../data/tasks/task-kind.ts';
import { TaskQueue } from '../../data/tasks/task-queue.ts';
import { blockingConnection } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { RedisBackoffs } from '../loops/redis-backoff.ts';
import { taskHandler } from './task-handler.ts';
import { TaskRunner } from './task-runner.ts';

const prefix = 'test:';
const timeoutMs = 300_000;
const hold: TaskKind<{ hangs: boolean }, { worker: string }> = {
  name: 'hold',
  input: z.object({ hangs: z.boolean() }),
  result: z.object({ worker: z.string() }),
};
let redis: RedisServer;
let caller: RedisTaskCaller;
const ends: (() => unknown)[] = [];
/** Organizations whose tasks are under way. */
const underWay: string[] = [];
/** Ends what hangs. */
let release = Promise.withResolvers<void>();

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  underWay.length = 0;
  release = Promise.withResolvers();
  caller = new RedisTaskCaller({ redis: redis.client, blocking: blocking(), prefix, clock: systemClock, logger: silentLogger });
});
afterEach(async () => {
  release.resolve();
  for (const end of ends.splice(0).reverse()) await end();
});

function blocking() {
  const client = blockingConnection(redis.url, { blockMs: 30_000 });
  ends.push(() => void (client.status === 'wait' || client.disconnect()));
  return client;
}

async function startRunner(worker: string): Promise<void> {
  const directory = new RedisWorkerDirectory({ redis: redis.client, prefix, shards: 1, version: '1.2.3' });
  await directory.heartbeat(worker, 1);
  const beating = setInterval(() => void directory.heartbeat(worker, 1), 1000);
  ends.push(() => clearInterval(beating));
  const runner = new TaskRunner({
    queue: new TaskQueue({ redis: redis.client, blocking: blocking(), prefix }),
    handlers: [
      taskHandler(hold, async ({ hangs }, { org }) => {
        underWay.push(org);
        if (hangs) await release.promise;
        return { worker };
      }),
    ],
    worker,
    clock: systemClock,
    logger: silentLogger,
    backoff: new RedisBackoffs(silentLogger).watch(),
    metrics: { tasks: new Counter({ name: 'tasks', help: 'h', labelNames: ['kind', 'outcome'], registers: [] }) },
  });
  runner.start();
  ends.push(() => {
    release.resolve();
    return runner.stop(1000);
  });
}

function call(org: string, hangs: boolean): Promise<{ worker: string }> {
  const answered = caller.call(hold, { org, credential: 'key_a', input: { hangs }, timeoutMs });
  answered.catch(() => undefined);
  return answered;
}

const hostile = ['org_a', 'org_b', 'org_c', 'org_d'];

async function hang(): Promise<void> {
  for (const org of hostile) {
    for (let i = 0; i < 8; i++) void call(org, true);
    // The fourth organization gets as many of the last eight slots of 32 as it leaves.
    await eventually(() => expect(underWay.filter((each) => each === org)).toHaveLength(org === 'org_d' ? 4 : 8));
  }
}

test('four organizations whose tests hang leave slots to a fifth one, whose tests are made before theirs that wait', async () => {
  await startRunner('w1');
  await hang();
  expect(underWay).toHaveLength(28);
  expect(await redis.client.llen(taskKeys(prefix).queue)).toBe(4);
  for (let i = 0; i < 3; i++) expect(await call('org_e', false)).toEqual({ worker: 'w1' });
  expect(underWay.filter((org) => org !== 'org_e')).toHaveLength(28);
  release.resolve();
  await eventually(() => expect(underWay).toHaveLength(3 + 32));
});

test('what a worker leaves, because its organization has enough there, another worker takes', async () => {
  await startRunner('w1');
  await hang();
  await startRunner('w2');
  await eventually(() => expect(underWay).toHaveLength(32));
});
