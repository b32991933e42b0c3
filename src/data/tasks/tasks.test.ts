import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { eventually } from '../../../test/support/eventually.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { defaultPool } from '../../core/default-pool.ts';
import { PosthornError } from '../../core/errors.ts';
import { blockingConnection, commandConnection } from '../../redis/connection.ts';
import { RedisWorkerDirectory } from '../membership/worker-directory.ts';
import { OrganizationPools } from '../pools/organization-pools.ts';
import { RedisTaskCaller } from './task-caller.ts';
import { type TaskKind, taskKeys } from './task-kind.ts';
import { type Task, TaskQueue } from './task-queue.ts';

const prefix = 'test:';
const double: TaskKind<{ number: number }, { doubled: number }> = {
  name: 'double',
  input: z.object({ number: z.number() }),
  result: z.object({ doubled: z.number() }),
};
let redis: RedisServer;
let queue: TaskQueue;
let caller: RedisTaskCaller;
/** Time of the callers: no deadline ends while the machine is stopped. */
let clock: FakeClock;
let tokens = 0;
const ends: (() => void)[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  clock = new FakeClock();
  await new RedisWorkerDirectory({ redis: redis.client, prefix, shards: 1, version: '1.2.3' }).heartbeat('w1', 1);
  queue = new TaskQueue({ redis: redis.client, blocking: blocking(), prefix });
  caller = newCaller();
});
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

function blocking() {
  const client = blockingConnection(redis.url, { blockMs: 30_000 });
  // One that was never used would keep the process for 2 s.
  ends.push(() => void (client.status === 'wait' || client.disconnect()));
  return client;
}
function newCaller(): RedisTaskCaller {
  return new RedisTaskCaller({ redis: redis.client, blocking: blocking(), prefix, clock, logger: silentLogger });
}
function call(number: number, { org = 'org_a', credential = 'key_a' } = {}): Promise<{ doubled: number }> {
  const answered = caller.call(double, { org, credential, input: { number }, timeoutMs: 60_000 });
  answered.catch(() => undefined);
  return answered;
}
async function taken(from = queue): Promise<Task> {
  return await eventually(async () => {
    const { task } = await from.take(`t${++tokens}`);
    if (task === null) throw new Error('there is no task');
    return task;
  });
}
const waiting = (count: number) => eventually(async () => expect(await redis.client.llen(taskKeys(prefix).queue)).toBe(count));

describe('a task', () => {
  test('a task reaches a worker that sleeps on the doorbell, and its answer the caller', async () => {
    const woken = queue.wait();
    const answered = call(21);
    await woken;
    const task = await taken();
    expect(task).toMatchObject({ kind: 'double', org: 'org_a', input: { number: 21 } });
    expect(task.remainingMs).toBeGreaterThan(30_000);
    await expect(queue.answer(task, { result: { doubled: 42 } })).resolves.toBe(true);
    await expect(answered).resolves.toEqual({ doubled: 42 });
    for (const left of ['t:*', 'o:*', 'a:*', 'q']) expect(await redis.client.keys(`${prefix}{tasks}:${left}`)).toEqual([]);
  });

  test('a task is given to one worker, again to the same call of it, and answered once', async () => {
    const answered = call(1);
    await waiting(1);
    const first = await queue.take('same');
    expect(await queue.take('same')).toEqual({ ...first, task: { ...first.task, remainingMs: expect.any(Number) } });
    expect((await queue.take('other')).task).toBeNull();
    if (first.task === null) throw new Error('there is no task');
    await expect(queue.answer(first.task, { result: { doubled: 2 } })).resolves.toBe(true);
    await expect(queue.answer(first.task, { result: { doubled: 3 } })).resolves.toBe(false);
    await expect(answered).resolves.toEqual({ doubled: 2 });
  });

  test('a task whose handler threw an error of ours throws it at the caller', async () => {
    const answered = call(1);
    await queue.answer(await taken(), { error: new PosthornError('RESOURCE_NOT_FOUND', 'There is nothing to double.') });
    await expect(answered).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND', message: 'There is nothing to double.' });
  });

  test('a task that nobody answers is UNAVAILABLE after its deadline; it is not begun after it, nor its answer kept', async () => {
    const open = [call(1), call(2)];
    await waiting(2);
    const task = await taken();
    await clock.advance(59_999);
    expect(await Promise.race([...open, 'open'])).toBe('open');
    await clock.advance(1);
    for (const each of open) await expect(each).rejects.toMatchObject({ code: 'UNAVAILABLE', retryAfterSeconds: 5 });
    // In Redis it ends by its own time to live.
    const tasks = await redis.client.keys(taskKeys(prefix).task('*'));
    expect(tasks).toHaveLength(2);
    for (const key of tasks) {
      expect(await redis.client.pttl(key)).toBeLessThanOrEqual(60_000);
      await redis.client.pexpire(key, 1);
      await eventually(async () => expect(await redis.client.exists(key)).toBe(0));
    }
    await expect(queue.answer(task, { result: { doubled: 2 } })).resolves.toBe(false);
    expect((await queue.take('later')).task).toBeNull();
    expect(await redis.client.llen(taskKeys(prefix).queue)).toBe(0);
  });

  test('a task of a credential that has eight open is refused, while those of others are not', async () => {
    for (let i = 0; i < 8; i++) void call(i);
    await waiting(8);
    const task = await taken();
    await expect(call(8)).rejects.toMatchObject({ code: 'UNAVAILABLE', message: expect.stringContaining('of this key or user') });
    void call(9, { org: 'org_b' });
    await waiting(8);
    await queue.answer(task, { result: { doubled: 0 } });
    void call(10);
    await waiting(9);
  });

  test('credentials of an organization leave tasks to the next one, until it has ten open', async () => {
    for (let i = 0; i < 8; i++) void call(i);
    await waiting(8);
    void call(8, { credential: 'key_b' });
    await waiting(9);
    const refused = { code: 'UNAVAILABLE', message: expect.stringContaining('for others of the organization') };
    await expect(call(9, { credential: 'key_b' })).rejects.toMatchObject(refused);
    void call(9, { credential: 'key_c' });
    await waiting(10);
    const full = { code: 'UNAVAILABLE', message: expect.stringContaining('of this organization are under way') };
    await expect(call(10, { credential: 'key_d' })).rejects.toMatchObject(full);
  });

  test('organizations whose tasks wait leave places to the next one', async () => {
    const places: number[] = [];
    for (let org = 0; org < 9; org++) {
      const before = await redis.client.llen(taskKeys(prefix).queue);
      const calls = Array.from({ length: 8 }, (_, i) => call(i, { org: `org_${org}` }));
      const refused: unknown[] = [];
      for (const each of calls) each.catch((error: unknown) => refused.push(error));
      await eventually(async () => expect((await redis.client.llen(taskKeys(prefix).queue)) + refused.length).toBe(before + 8));
      places.push(8 - refused.length);
    }
    expect(places).toEqual([8, 8, 8, 8, 8, 8, 8, 4, 2]);
  });

  test('a task is refused when 64 wait, all organizations together', async () => {
    for (let i = 0; i < 64; i++) void call(i, { org: `org_${i}` });
    await waiting(64);
    await expect(call(64, { org: 'org_new' })).rejects.toMatchObject({ code: 'UNAVAILABLE', message: expect.stringContaining('busy') });
  });

  test('a task is refused at once when no worker lives', async () => {
    await redis.client.flushall();
    await expect(call(1)).rejects.toMatchObject({ code: 'UNAVAILABLE', message: 'No delivery worker is running.' });
  });
});

test('answers reach the process that made the task', async () => {
  const other = newCaller();
  const answers = [call(1), other.call(double, { org: 'org_b', credential: 'key_b', input: { number: 2 }, timeoutMs: 60_000 })];
  for (let i = 0; i < 2; i++) {
    const task = await taken();
    await queue.answer(task, { result: { doubled: 2 * double.input.parse(task.input).number } });
  }
  expect(await Promise.all(answers)).toEqual([{ doubled: 2 }, { doubled: 4 }]);
});

test('a caller that waits for nothing sends nothing to Redis', async () => {
  const answered = call(1);
  await queue.answer(await taken(), { result: { doubled: 2 } });
  await answered;
  const watcher = commandConnection(redis.url);
  ends.push(() => watcher.disconnect());
  await watcher.connect();
  const processed = async (): Promise<number> => Number(/total_commands_processed:(\d+)/.exec(await watcher.info('stats'))?.[1]);
  const before = await processed();
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect((await processed()) - before).toBe(1);
});

test('a caller that waits while Redis goes down is rejected at once', async () => {
  const own = await startRedis();
  try {
    const client = blockingConnection(own.url, { blockMs: 30_000 });
    ends.push(() => client.disconnect());
    await new RedisWorkerDirectory({ redis: own.client, prefix, shards: 1, version: '1.2.3' }).heartbeat('w1', 1);
    const lonely = new RedisTaskCaller({ redis: own.client, blocking: client, prefix, clock, logger: silentLogger });
    const answered = lonely.call(double, { org: 'org_a', credential: 'key_a', input: { number: 1 }, timeoutMs: 60_000 });
    answered.catch(() => undefined);
    await eventually(() => expect(client.status).toBe('ready'));
    await own.kill('SIGKILL');
    await expect(answered).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await expect(lonely.call(double, { org: 'org_a', credential: 'key_a', input: { number: 1 }, timeoutMs: 60_000 })).rejects.toMatchObject(
      {
        code: 'UNAVAILABLE',
      },
    );
  } finally {
    await own.stop();
  }
});

describe('a task of an organization that has a pool of its own', () => {
  let pools: OrganizationPools;
  let there: TaskQueue;
  beforeEach(async () => {
    pools = new OrganizationPools({ redis: redis.client, prefix, shards: 1 });
    await pools.assign('org_a', 'x');
    await new RedisWorkerDirectory({ redis: redis.client, prefix, shards: 1, version: '1.2.3' }).heartbeat('w2@x', 1);
    there = new TaskQueue({ redis: redis.client, blocking: blocking(), prefix, pool: 'x' });
  });
  const waitingThere = (count: number) =>
    eventually(async () => expect(await redis.client.llen(`${taskKeys(prefix).queue}@x`)).toBe(count));
  const takenHere = async () => (await queue.take(`t${++tokens}`)).task;
  const takenThere = async () => (await there.take(`t${++tokens}`)).task;

  test('wakes a worker of that pool and is given to no other', async () => {
    const woken = there.wait();
    const answered = call(21);
    await woken;
    expect(await takenHere()).toBeNull();
    await there.answer(await taken(there), { result: { doubled: 42 } });
    await expect(answered).resolves.toEqual({ doubled: 42 });
    void call(1, { org: 'org_b' });
    await waiting(1);
    expect(await takenThere()).toBeNull();
    expect(await takenHere()).toMatchObject({ org: 'org_b' });
  });

  test('a task of an organization that has a pool of its own goes with the organization to another pool, and to the default one, while it waits', async () => {
    void call(1);
    void call(2);
    await waitingThere(2);
    expect(await takenThere()).toMatchObject({ org: 'org_a' });
    await pools.assign('org_a', 'y');
    expect(await takenThere()).toBeNull();
    const further = new TaskQueue({ redis: redis.client, blocking: blocking(), prefix, pool: 'y' });
    await further.wait();
    await pools.assign('org_a', defaultPool);
    expect((await further.take('y')).task).toBeNull();
    await queue.wait();
    expect(await takenHere()).toMatchObject({ org: 'org_a' });
    expect(await takenHere()).toBeNull();
    expect(await redis.client.keys('*@*')).toEqual([]);
  });

  test('a task of an organization that has a pool of its own leaves nothing in a pool that goes when nobody has taken it in time', async () => {
    await pools.assign('org_b', 'x');
    void call(0, { org: 'org_b' });
    await waitingThere(1);
    for (let i = 1; i < 4; i++) void call(i);
    await waitingThere(4);
    const { queue: key, task, organization } = taskKeys(prefix);
    const [open, ...expired] = await redis.client.lrange(`${key}@x`, 0, -1);
    // As when their time to live is over.
    await redis.client.del(organization('org_a'), ...expired.map(task));
    await pools.assign('org_a', 'y');
    await waitingThere(4);
    await pools.assign('org_b', 'y');
    expect(await redis.client.keys('*@x')).toEqual([]);
    expect(await redis.client.lrange(`${key}@y`, 0, -1)).toEqual([open]);
  });

  test('a task of an organization that has a pool of its own is refused at once when no worker of it lives', async () => {
    await pools.assign('org_a', 'y');
    await expect(call(1)).rejects.toMatchObject({ code: 'UNAVAILABLE', message: 'No delivery worker of the pool y is running.' });
    await redis.client.zrem(`${prefix}{workers}:alive`, 'w1');
    await expect(call(1, { org: 'org_b' })).rejects.toMatchObject({ code: 'UNAVAILABLE', message: 'No delivery worker is running.' });
  });
});
