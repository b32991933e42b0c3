import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { clockChanges, minutesOfCron } from '../../test/support/minutes-of-cron.ts';
import { RecordRegistry } from '../../test/support/record-registry.ts';
import { organizationRecord } from '../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { recordLayoutVersion } from '../core/records.ts';
import { CronExecutions } from '../data/cron/cron-executions.ts';
import { CronRuns } from '../data/cron/cron-runs.ts';
import { CronScheduler } from './cron-scheduler.ts';

const prefix = 'test:';
const halfHourMs = 1_800_000;
/** A year with a 29th of February that is over: Redis has the clock of this machine, and refuses slots that have not come. */
const [fromMs, toMs] = [Date.UTC(2023, 10, 1), Date.UTC(2024, 10, 8)];
/** All slots are on the half hours of UTC. */
const jobs = [
  ['30 2 * * 0', 'America/New_York'],
  ['30 1 * * 0', 'America/New_York'],
  ['0 */8 * * 0,6', 'America/New_York'],
  ['0 0 * * 5', 'Africa/Cairo'],
  ['30 23 * * 4', 'Africa/Cairo'],
  ['0 2 * * 0', 'Australia/Lord_Howe'],
  ['30 1 * * 0', 'Australia/Lord_Howe'],
  ['0,30 1,2 * * 0', 'Europe/Berlin'],
  ['0 9 1,15 * 1', 'Asia/Kolkata'],
  ['0 12 29 2 *', 'UTC'],
  ['30 1-3 28-31 3,10 0', 'Antarctica/Troll'],
] as const;

const expected = jobs.map(([expression, zone]) => minutesOfCron({ expression, zone, fromMs, toMs }));

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

test('a scheduler queues every slot of a year as it comes, each once, and no other', async () => {
  const clock = new FakeClock(fromMs - 60_000);
  const registry = new RecordRegistry();
  registry.put('organization', organizationRecord());
  const http = { url: 'http://127.0.0.1:9/', method: 'POST', headers: [], payload: '', timeoutMs: 1000, useStaticIp: false } as const;
  const ids = jobs.map(([schedule, timeZone], i) => {
    const id = `cron_${i}`;
    const record = { v: recordLayoutVersion, id, org: 'org_a', slug: id, name: id, enabled: true, schedule, timeZone, generation: 1 };
    registry.put('cronJob', { ...record, http: { ...http, headers: [] } });
    return id;
  });
  const runs = new CronRuns({ redis: redis.client, prefix });
  const executions = new CronExecutions({ redis: redis.client, prefix });
  const stopping = new AbortController();
  const options = { id: 's', registry, published: { ids: async () => ids }, runs, executions, clock, logger: silentLogger };
  const running = new CronScheduler(options).run(stopping.signal);
  /** The scheduler waits for its clock only when it has had all replies. */
  const asleep = async (): Promise<void> => {
    while (clock.pending === 0) await setImmediate();
  };
  const queued = new Map<string, number[]>(ids.map((id) => [id, []]));
  await asleep();
  for (const ms of stops()) {
    clock.jump(ms - clock.now());
    await clock.advance(0);
    await asleep();
    const { runs: taken } = await runs.take(`t${ms}`, 100, []);
    for (const run of taken) {
      expect([run.jobId, run.slotMs]).toEqual([run.jobId, ms]);
      queued.get(run.jobId)?.push(run.slotMs);
      await runs.release(run.id);
    }
  }
  stopping.abort();
  await running;
  const shown = (all: readonly number[]) => all.map((ms) => new Date(ms).toISOString());
  for (const [i, [expression, zone]] of jobs.entries()) {
    expect(expected[i]?.length).toBeGreaterThan(0);
    expect([expression, zone, ...shown(queued.get(ids[i] ?? '') ?? [])]).toEqual([expression, zone, ...shown(expected[i] ?? [])]);
  }
}, 120_000);

/** Every slot, and the half hours around changes of the clocks: what is queued between two of them is late, and seen by that. */
function stops(): number[] {
  const changes = [...new Set(jobs.map(([, zone]) => zone))].flatMap((zone) => clockChanges(zone, fromMs, toMs));
  const around = changes.flatMap((change) => Array.from({ length: 17 }, (_, i) => change + (i - 8) * halfHourMs));
  return [...new Set([...expected.flat(), ...around])].filter((ms) => ms < toMs).sort((a, b) => a - b);
}
