import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type CrashMoment, crashAtEveryCommand } from '../../../test/support/crashing-client.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { type CronRun, CronRuns } from './cron-runs.ts';

const prefix = 'test:';
const revision = 'r';
const jobs = ['cron_a', 'cron_b'];
/** With what its worker may take beyond it, over at once: what is not released is lost. */
const timeoutMs = -10_001;
let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

interface World {
  slotsMs: readonly number[];
  /** Runs that a process was given. */
  given: CronRun[];
}

/** A process that schedules the jobs and makes their runs. */
async function run(client: RedisClient, process: string, { slotsMs, given }: World): Promise<void> {
  const runs = new CronRuns({ redis: client, prefix });
  const [firstMs = 0] = slotsMs;
  await runs.turn(process, 1);
  await runs.seen(
    jobs.map((id) => ({ id, revision })),
    firstMs - 1,
  );
  for (const slotMs of slotsMs) {
    await runs.claim(jobs.map((jobId) => ({ id: `exec_${process}_${jobId}_${slotMs}`, jobId, org: 'org_a', slotMs, timeoutMs, revision })));
    const { runs: taken } = await runs.take(`${process}_${slotMs}`, 16, []);
    given.push(...taken);
    for (const { id } of taken) await runs.release(id);
  }
  await runs.endTurn(process);
}

const slotOf = ({ jobId, slotMs }: CronRun): string => `${jobId} ${slotMs}`;

test.each<CrashMoment>(['before', 'after'])(
  'a process that schedules and makes runs and dies %s any of its commands leaves each slot to be made at most once, and the newest of a job not left out',
  async (moment) => {
    let deaths = 0;
    await crashAtEveryCommand(redis.client, moment, {
      prepare: async (): Promise<World> => {
        await redis.client.flushall();
        const nowMs = systemClock.now();
        return { slotsMs: [nowMs - 2000, nowMs - 1000], given: [] };
      },
      work: (client, world) => run(client, 'first', world),
      look: async (world) => {
        const runs = new CronRuns({ redis: redis.client, prefix });
        // Locks of a dead process expire by themselves.
        await eventually('the turn', 30_000, async () => (await runs.turn('next', 1)).isOurs);
        await run(redis.client, 'next', world);
        expect(await runs.organizationsWaiting()).toBe(0);
        // Runs given to the dead process, also by a lost reply: they are not made again.
        const { isOurs, lost } = await runs.turn('next', 1);
        expect(isOurs).toBe(true);
        const made = new Map([...world.given, ...lost].map((each) => [each.id, slotOf(each)]));
        expect([...made.values()].sort()).toEqual([...new Set(made.values())].sort());
        for (const jobId of jobs) expect([...made.values()]).toContain(`${jobId} ${world.slotsMs.at(-1)}`);
        deaths++;
      },
    });
    expect(deaths).toBeGreaterThan(7);
  },
);
