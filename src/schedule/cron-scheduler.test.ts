import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { type Receiver, startReceiver } from '../../test/support/receiver.ts';
import { RecordRegistry } from '../../test/support/record-registry.ts';
import { organizationRecord } from '../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { startTestDelivery } from '../../test/support/test-delivery.ts';
import { type CronJobRecord, recordLayoutVersion } from '../core/records.ts';
import { CronExecutions } from '../data/cron/cron-executions.ts';
import { CronRuns } from '../data/cron/cron-runs.ts';
import { systemClock } from '../runtime/system-clock.ts';
import { CronScheduler } from './cron-scheduler.ts';

const prefix = 'test:';
const noon = Date.UTC(2025, 0, 1, 12, 0, 30);
const minuteMs = 60_000;
let redis: RedisServer;
let clock: FakeClock;
let registry: RecordRegistry;
let runs: CronRuns;
let executions: CronExecutions;
const ids = new Set<string>();
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  redis = await startRedis();
  runs = new CronRuns({ redis: redis.client, prefix });
  executions = new CronExecutions({ redis: redis.client, prefix });
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  clock = new FakeClock(noon);
  ids.clear();
  registry = new RecordRegistry();
  registry.put('organization', organizationRecord());
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function job(changes: Partial<CronJobRecord> = {}, http: Partial<CronJobRecord['http']> = {}): void {
  const record: CronJobRecord = {
    v: recordLayoutVersion,
    id: 'cron_a',
    org: 'org_a',
    slug: 'a',
    name: 'a',
    enabled: true,
    schedule: '* * * * *',
    timeZone: 'UTC',
    http: { url: 'http://127.0.0.1:9/', method: 'POST', headers: [], payload: '', timeoutMs: 30_000, useStaticIp: false, ...http },
    generation: 1,
    ...changes,
  };
  ids.add(record.id);
  registry.put('cronJob', record);
}
function remove(id: string): void {
  ids.delete(id);
  registry.remove('cronJob', id);
}
let schedulers = 0;
/** Schedulers of this test that were not stopped. */
const running = new Set<string>();
function scheduler(): { stop(): Promise<void>; kill(): void } {
  const id = `s${++schedulers}`;
  running.add(id);
  const stopping = new AbortController();
  const ended = new CronScheduler({
    id,
    registry,
    published: { ids: async () => [...ids] },
    runs,
    executions,
    clock,
    logger: silentLogger,
  }).run(stopping.signal);
  const kill = (): void => {
    running.delete(id);
    stopping.abort();
  };
  const stop = async (): Promise<void> => {
    kill();
    await ended;
  };
  ends.push(stop);
  return { stop, kill };
}
/** Waits until every scheduler has done what there was to do and sleeps. */
const settled = () => eventually('all schedulers to sleep', 30_000, () => clock.pending === running.size);
async function passTime(ms: number): Promise<void> {
  await settled();
  for (let left = ms; left > 0; left -= 5000) {
    await clock.advance(Math.min(5000, left));
    await settled();
  }
}
let takes = 0;
/** The slots of all runs that wait, as minutes after noon. */
async function queued(): Promise<[string, number][]> {
  const all: [string, number][] = [];
  for (;;) {
    const { runs: taken } = await runs.take(`t${++takes}`, 100, []);
    if (taken.length === 0) return all.sort();
    for (const run of taken) {
      all.push([run.jobId, (run.slotMs - (noon - 30_000)) / minuteMs]);
      await runs.release(run.id);
    }
  }
}

describe('a scheduler', () => {
  test('a scheduler queues each slot of each job as it comes, and none of before the job was made', async () => {
    job();
    job({ id: 'cron_b', schedule: '*/2 * * * *' });
    scheduler();
    await settled();
    expect(await queued()).toEqual([]);
    await passTime(30_000);
    expect(await queued()).toEqual([['cron_a', 1]]);
    await passTime(minuteMs);
    expect(await queued()).toEqual([
      ['cron_a', 2],
      ['cron_b', 2],
    ]);
    expect(Object.fromEntries(await runs.lastSlots())).toEqual({ cron_a: noon + 90_000, cron_b: noon + 90_000 });
  });

  test('a scheduler follows jobs that are made, changed, disabled, enabled and deleted', async () => {
    scheduler();
    await settled();
    job({ schedule: '5 * * * *' });
    await passTime(minuteMs);
    expect(await queued()).toEqual([]);
    job({ schedule: '* * * * *' });
    await passTime(minuteMs);
    expect(await queued()).toEqual([['cron_a', 2]]);
    job({ enabled: false });
    await passTime(minuteMs);
    job({ enabled: true });
    await settled();
    expect(await queued()).toEqual([]);
    await passTime(minuteMs);
    expect(await queued()).toEqual([['cron_a', 4]]);
    remove('cron_a');
    await passTime(2 * minuteMs);
    expect(await queued()).toEqual([]);
    expect(await runs.jobIds()).toEqual([]);
  });

  test('two of them claim each slot once, also when the one with the turn is killed', async () => {
    for (let i = 0; i < 20; i++) job({ id: `cron_${i}`, schedule: i % 2 === 0 ? '* * * * *' : '*/2 * * * *' });
    const first = scheduler();
    await settled();
    scheduler();
    await settled();
    await passTime(minuteMs);
    expect(await queued()).toHaveLength(10);
    first.kill();
    // A killed one does not release its lock.
    await redis.client.set(`${prefix}{cron}:turn`, 'killed', 'PX', 600_000);
    await passTime(minuteMs);
    expect(await queued()).toEqual([]);
    await redis.client.del(`${prefix}{cron}:turn`);
    await passTime(10_000);
    expect(await queued()).toEqual(Array.from({ length: 20 }, (_, i) => [`cron_${i}`, 2]).sort());
    await passTime(minuteMs);
    expect(await queued()).toHaveLength(10);
  });

  test('a scheduler that has both turns at once, by a pause, claims nothing twice', async () => {
    job();
    scheduler();
    await settled();
    await redis.client.del(`${prefix}{cron}:turn`);
    scheduler();
    await passTime(minuteMs);
    expect(await queued()).toEqual([['cron_a', 1]]);
  });

  test('a scheduler makes up what was missed once when it is not ten minutes late, and skips it otherwise', async () => {
    job();
    job({ id: 'cron_b', schedule: '5 * * * *' });
    job({ id: 'cron_c', schedule: '15 * * * *' });
    const first = scheduler();
    await passTime(minuteMs);
    await queued();
    await first.stop();
    clock.jump(15 * minuteMs);
    scheduler();
    await settled();
    // It is 12:16:30: a has missed 15, b one of eleven minutes ago, c one of a minute ago.
    expect(await queued()).toEqual([
      ['cron_a', 16],
      ['cron_c', 15],
    ]);
    await passTime(minuteMs);
    expect(await queued()).toEqual([['cron_a', 17]]);
  });

  test('a scheduler has at most one run of a job waiting, for the newest slot', async () => {
    job();
    scheduler();
    await passTime(5 * minuteMs);
    expect(await queued()).toEqual([['cron_a', 5]]);
    await passTime(minuteMs);
    expect(await queued()).toEqual([['cron_a', 6]]);
  });

  test('a scheduler continues after Redis was emptied', async () => {
    job();
    scheduler();
    await passTime(minuteMs);
    await redis.client.flushall();
    registry.put('cronJob', await registry.getOfAny('cronJob', 'cron_a').then((record) => record ?? Promise.reject(new Error('gone'))));
    await passTime(minuteMs);
    expect(await queued()).toEqual([['cron_a', 2]]);
  });

  test('a scheduler continues with other jobs, and with a job as it was, when a record or a recorded run cannot be read', async () => {
    job();
    job({ id: 'cron_b' });
    scheduler();
    await passTime(30_000);
    expect(await queued()).toHaveLength(2);
    const get = registry.get.bind(registry);
    registry.get = async (kind, id) => {
      if (id === 'cron_b') throw new SyntaxError('not JSON');
      return await get(kind, id);
    };
    job({ id: 'cron_b' });
    job({ id: 'cron_c' });
    await redis.client.zadd(`${prefix}{cron:cron_a}:order`, 1, 'exec_x');
    await redis.client.hset(`${prefix}{cron:cron_a}:entries`, 'exec_x', '1{');
    await redis.client.hset(`${prefix}{cron}:runs`, 'exec_y', `exec_y cron_a org_a ${noon} 1000`);
    await redis.client.zadd(`${prefix}{cron}:held`, 1, 'exec_y');
    await passTime(minuteMs);
    expect((await queued()).map(([id]) => id)).toEqual(['cron_a', 'cron_b', 'cron_c']);
    expect(await redis.client.zcard(`${prefix}{cron}:held`)).toBe(0);
  });

  test('a scheduler queues thousands of jobs of one minute, organizations in turn', async () => {
    for (let i = 0; i < 3000; i++) job({ id: `cron_${i}`, org: i < 2990 ? 'org_a' : 'org_b' });
    scheduler();
    await eventually(async () => expect(await runs.jobIds()).toHaveLength(3000));
    await clock.advance(30_000);
    await eventually(async () => expect(await redis.client.hlen(`${prefix}{cron}:waiting`)).toBe(3000));
    const { runs: first } = await runs.take('first', 20, []);
    expect(first.filter(({ org }) => org === 'org_b')).toHaveLength(10);
    expect((await runs.take('second', 4, ['org_a'])).runs).toEqual([]);
  });
});

describe('a scheduler whose clock is an hour fast', () => {
  const hourMs = 60 * minuteMs;
  beforeEach(() => {
    clock = new FakeClock(systemClock.now() + hourMs);
  });

  test('claims what has come by the time of Redis, and no slot of the future', async () => {
    job();
    scheduler();
    await eventually(async () => expect(await runs.jobIds()).toEqual(['cron_a']));
    const seenMs = Number((await redis.client.hget(`${prefix}{cron}:slots`, 'cron_a'))?.split(' ')[0]);
    expect(seenMs).toBeLessThanOrEqual(systemClock.now());
    // Its clock runs while that of Redis is nearly stopped.
    await passTime(2 * minuteMs);
    const claimed = [...(await runs.lastSlots()).values()];
    expect(claimed.filter((slotMs) => slotMs > systemClock.now() + 2000)).toEqual([]);
  });

  test('a scheduler whose clock is an hour fast makes up what has come meanwhile', async () => {
    job();
    const first = scheduler();
    await eventually(async () => expect(await runs.jobIds()).toEqual(['cron_a']));
    await first.stop();
    const slots = `${prefix}{cron}:slots`;
    const [, revision = ''] = (await redis.client.hget(slots, 'cron_a'))?.split(' ') ?? [];
    await redis.client.hset(slots, 'cron_a', `${systemClock.now() - 2 * minuteMs} ${revision}`);
    scheduler();
    await eventually(async () => expect([...(await runs.lastSlots()).keys()]).toEqual(['cron_a']));
    const [slotMs = 0] = (await runs.lastSlots()).values();
    expect(slotMs).toBeLessThanOrEqual(systemClock.now());
    expect(slotMs).toBeGreaterThan(systemClock.now() - 2 * minuteMs);
  });
});

describe('a run', () => {
  let now: number;
  async function receiver(answer?: Parameters<typeof startReceiver>[0]): Promise<Receiver> {
    const to = await startReceiver(answer);
    ends.push(() => to.close());
    return to;
  }
  function worker(): { stop(graceMs?: number): Promise<void> } {
    const delivery = startTestDelivery(redis, { prefix, registry, egress: { allowedCidrs: ['127.0.0.0/8'] } });
    ends.push(() => delivery.stop(0));
    return delivery;
  }
  const claim = async (id: string, slotMs = now, org = 'org_a') => {
    await runs.seen([{ id: 'cron_a', revision: 'r' }], slotMs - 1);
    return await runs.claim([{ id, jobId: 'cron_a', org, slotMs, timeoutMs: 30_000, revision: 'r' }]);
  };
  beforeEach(() => {
    now = systemClock.now();
  });

  test('a run is made by one of two workers, and recorded', async () => {
    const to = await receiver();
    job({}, { url: to.url, method: 'GET' });
    worker();
    worker();
    for (let i = 0; i < 20; i++) {
      expect(await claim(`exec_${i}`, now + i)).toBe(1);
      expect(await claim(`exec_again_${i}`, now + i)).toBe(0);
      await to.arrived(i + 1);
    }
    await eventually(async () => expect(await executions.newest('org_a', 'cron_a', 100)).toHaveLength(20));
    await eventually(async () =>
      expect(await executions.newest('org_a', 'cron_a', 1)).toMatchObject([{ status: 'success', responseStatus: 200, responseBody: 'ok' }]),
    );
    expect(to.requests).toHaveLength(20);
    await eventually(async () => expect(await redis.client.zcard(`${prefix}{cron}:held`)).toBe(0));
  });

  test('a run of a job that is disabled or gone by then is dropped, and one that is ten minutes late skipped', async () => {
    const over = async () => expect(await redis.client.exists(`${prefix}{cron}:waiting`, `${prefix}{cron}:held`)).toBe(0);
    const to = await receiver();
    job({ enabled: false }, { url: to.url });
    worker();
    await claim('exec_1');
    await eventually(over);
    job({}, { url: to.url });
    await redis.client.flushall();
    await claim('exec_2', now - 601_000);
    await eventually(over);
    remove('cron_a');
    await claim('exec_3', now + 1);
    await eventually(over);
    expect(to.requests).toEqual([]);
    expect(await executions.newest('org_a', 'cron_a', 10)).toEqual([]);
  });

  test('a run whose worker has died ends as lost and is not made again', async () => {
    job();
    await claim('exec_1');
    expect((await runs.take('dead', 1, [])).runs).toHaveLength(1);
    await redis.client.zadd(`${prefix}{cron}:held`, 1, 'exec_1');
    scheduler();
    await eventually(async () =>
      expect(await executions.newest('org_a', 'cron_a', 10)).toMatchObject([
        { id: 'exec_1', status: 'failed', errorMessage: expect.stringContaining('worker_lost') },
      ]),
    );
    expect(await redis.client.zcard(`${prefix}{cron}:held`)).toBe(0);
    expect(await queued()).toEqual([]);
    // The worker was only stopped: its report does not count.
    await executions.write({
      id: 'exec_1',
      jobId: 'cron_a',
      org: 'org_a',
      status: 'success',
      responseStatus: 200,
      responseBody: 'late',
      errorMessage: null,
      latencyMs: 1,
      ...{ startedAtMs: now, completedAtMs: now },
    });
    expect(await executions.newest('org_a', 'cron_a', 10)).toMatchObject([{ status: 'failed', responseBody: null }]);
  });

  test('a run that a stopping worker breaks off is recorded as failed', async () => {
    const to = await receiver(() => undefined);
    job({}, { url: to.url, timeoutMs: 60_000 });
    const stopped = worker();
    await claim('exec_1');
    await to.arrived(1);
    await stopped.stop(100);
    expect(await executions.newest('org_a', 'cron_a', 10)).toMatchObject([{ status: 'failed', errorMessage: 'the worker stops' }]);
  });

  test('a run of an organization with many slow jobs leaves half of a worker to others', async () => {
    const slow = await receiver(() => undefined);
    const quick = await receiver();
    for (let i = 0; i < 100; i++) job({ id: `cron_${i}` }, { url: slow.url, timeoutMs: 60_000 });
    job({ id: 'cron_b', org: 'org_b' }, { url: quick.url });
    const run = { org: 'org_a', slotMs: now, timeoutMs: 60_000, revision: 'r' };
    const all = [...Array(100).keys()].map((i) => ({ ...run, id: `exec_${i}`, jobId: `cron_${i}` }));
    await runs.seen([...all.map(({ jobId }) => ({ id: jobId, revision: 'r' })), { id: 'cron_b', revision: 'r' }], now - 1);
    await runs.claim(all);
    worker();
    await slow.arrived(32);
    await runs.claim([{ ...run, id: 'exec_b', jobId: 'cron_b', org: 'org_b' }]);
    await quick.arrived(1);
    expect(slow.requests).toHaveLength(32);
  });
});
