import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { CronExecutions } from '../../src/data/cron-executions.ts';
import { CronBell, CronRuns } from '../../src/data/cron-runs.ts';
import { destinationTestTask } from '../../src/data/destination-test-task.ts';
import { RedisTaskCaller } from '../../src/data/task-caller.ts';
import { TaskQueue } from '../../src/data/task-queue.ts';
import { RedisWorkerDirectory } from '../../src/data/worker-directory.ts';
import type { RedisAddress } from '../../src/redis/address.ts';
import { blockingConnection, commandConnection, type RedisClient } from '../../src/redis/connection.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { silentLogger } from '../support/logger.ts';
import { passes } from '../support/passes.ts';
import { type RedisGroup, startRedisCluster } from '../support/redis-group.ts';

const prefix = 'posthorn:';
const users = readFileSync(new URL('../../config/redis/users.acl', import.meta.url), 'utf8');
let cluster: RedisGroup;
let address: RedisAddress;
let redis: RedisClient;
const clients: RedisClient[] = [];

beforeAll(async () => {
  cluster = await startRedisCluster();
  const [, name = '', ...rules] =
    users
      .split('\n')
      .find((line) => line.startsWith('user posthorn'))
      ?.split(' ') ?? [];
  for (const { client } of cluster.nodes) await client.call('ACL', 'SETUSER', name, ...rules);
  address = { mode: 'cluster', url: `redis://posthorn:change-me@${cluster.hosts}` };
  redis = commandConnection(address);
  clients.push(redis);
  redis.on('error', () => {});
  await redis.connect();
}, 60_000);
afterAll(async () => {
  for (const client of clients) client.disconnect();
  await cluster?.stop();
}, 30_000);

function blocking(): RedisClient {
  const client = blockingConnection(address, { blockMs: 30_000 });
  clients.push(client);
  return client;
}

test('a task goes to a worker and its answer back, with the commands of the ACL user alone', async () => {
  await new RedisWorkerDirectory({ redis, prefix, shards: 1 }).beat('w1', 1);
  const queue = new TaskQueue({ redis, blocking: blocking(), prefix });
  const caller = new RedisTaskCaller({ redis, blocking: blocking(), prefix, clock: systemClock, logger: silentLogger });
  const woken = queue.wait();
  const input = { destinationId: 'dst_a', generation: 1, payload: null };
  const answered = caller.call(destinationTestTask, { org: 'org_a', input, timeoutMs: 10_000 });
  await woken;
  const { task } = await queue.take('t1');
  if (task === null) throw new Error('there is no task');
  const result = { success: false, statusCode: null, latency: 1, error: 'timeout', message: 'late' } as const;
  await queue.answer(task, { result });
  await expect(answered).resolves.toEqual(result);
});

test('a slot is claimed once, run by a worker that sleeps, recorded in a slot of its own, and forgotten', async () => {
  const runs = new CronRuns({ redis, prefix });
  const executions = new CronExecutions({ redis, prefix });
  const bell = new CronBell({ blocking: blocking(), prefix });
  expect(await runs.turn('s1', 10_000)).toMatchObject({ isOurs: true, lost: [] });
  expect(await runs.turn('s2', 10_000)).toMatchObject({ isOurs: false, lost: [] });
  const woken = bell.wait();
  const now = Date.now();
  expect(await runs.seen([{ id: 'cron_a', revision: 'r' }], now - 1)).toEqual([{ claimedMs: now - 1, isNew: true }]);
  const run = { id: 'exec_1', jobId: 'cron_a', org: 'org_a', slotMs: now, timeoutMs: 1000 };
  expect(await runs.claim([{ ...run, revision: 'r' }])).toBe(1);
  expect(await runs.claim([{ ...run, id: 'exec_2', revision: 'r' }])).toBe(0);
  await woken;
  expect(await runs.take('t1', 4, [])).toEqual({ runs: [run], hasMore: false });
  expect(await runs.take('t1', 4, [])).toEqual({ runs: [run], hasMore: false });
  const execution = {
    id: 'exec_1',
    jobId: 'cron_a',
    status: 'success',
    responseStatus: 200,
    responseBody: 'ok',
    errorMessage: null,
    latencyMs: 1,
    startedAtMs: now,
    completedAtMs: now + 1,
  } as const;
  expect(await executions.write(execution)).toBe(true);
  await runs.release('exec_1');
  await runs.hold({ ...run, id: 'exec_3' });
  await runs.release('exec_3');
  expect(await executions.newest('cron_a', 10)).toEqual([execution]);
  expect(await runs.lastRunsMs(['cron_a', 'cron_b'])).toEqual([expect.any(Number), null]);
  expect(await runs.lastSlots()).toEqual(new Map([['cron_a', now]]));
  await executions.remove('cron_a');
  await runs.forget('cron_a');
  await passes(async () => expect(await executions.newest('cron_a', 10)).toEqual([]));
  expect(await executions.write(execution)).toBe(false);
  await executions.allow('cron_a');
  expect(await runs.jobIds()).toEqual([]);
  await runs.endTurn('s1');
  expect((await runs.turn('s2', 10_000)).isOurs).toBe(true);
  bell.close();
});
