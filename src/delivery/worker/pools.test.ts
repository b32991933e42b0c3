import { expect, test } from '@jest/globals';
import { Counter, Registry } from 'prom-client';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { destinationPerShard } from '../../../test/support/destination-per-shard.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { destinationRecord, organizationRecord } from '../../../test/support/records.ts';
import { defaultPool } from '../../core/default-pool.ts';
import { recordLayoutVersion } from '../../core/records.ts';
import { checkShards } from '../../data/check/shard-check.ts';
import { CronRuns } from '../../data/cron/cron-runs.ts';
import { OrganizationPools } from '../../data/pools/organization-pools.ts';
import { destinationTestTask } from '../../data/tasks/destination-test-task.ts';
import { RedisTaskCaller } from '../../data/tasks/task-caller.ts';
import { taskBlockSeconds } from '../../data/tasks/task-kind.ts';
import { blockingConnection } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/system-clock.ts';

const shards = 2;
const suite = deliverySuite({ shards });
const { prefix, receiver } = suite;

test('an organization that moves between pools all the while loses nothing, and nothing is delivered twice', async () => {
  const to = await receiver();
  const nextEvent = destinationPerShard(suite.registry, shards, () => to.url);
  const metrics = { [defaultPool]: new Registry(), x: new Registry() };
  suite.worker({ metrics: metrics[defaultPool] });
  suite.worker({ metrics: metrics.x, pool: 'x' });
  const pools = new OrganizationPools({ redis: suite.redis.client, prefix, shards });
  const sent: string[] = [];
  for (let round = 0; round < 12; round++) {
    await pools.assign('org_a', round % 2 === 0 ? 'x' : defaultPool);
    for (let k = 0; k < 20; k++) {
      const event = nextEvent();
      await suite.acceptor.accept(event);
      sent.push(...event.targets.map(({ messageId }) => messageId));
    }
  }
  await eventually(() => expect(new Set(to.requests.map(({ headers }) => headers['webhook-id']))).toEqual(new Set(sent)));
  expect(to.requests).toHaveLength(sent.length);
  expect((await checkShards({ redis: suite.redis.client, prefix, shards })).findings).toEqual([]);
  for (const registry of Object.values(metrics)) expect(await outcomes(registry)).toBeGreaterThan(0);
});

/** Queues a run of a cron job, which sends to this address. */
async function queueRun(url: string, { org = 'org_a', k = 0 } = {}): Promise<void> {
  const id = `cron_${org}`;
  const http = { url, method: 'POST' as const, headers: [], payload: '', timeoutMs: 30_000, useStaticIp: false };
  const names = { slug: 'a', name: 'a', enabled: true, schedule: '* * * * *', timeZone: 'UTC' };
  suite.registry.put('cronJob', { v: recordLayoutVersion, id, org, ...names, http, generation: 1 });
  const runs = new CronRuns({ redis: suite.redis.client, prefix });
  const slotMs = systemClock.now() + k;
  await runs.seen([{ id, revision: 'r' }], slotMs - 60_000);
  expect(await runs.claim([{ id: `exec_${org}_${k}`, jobId: id, org, slotMs, timeoutMs: 30_000, revision: 'r' }])).toBe(1);
}

test('runs of cron jobs and tests of destinations are made by workers of the pool, while those of another one are idle', async () => {
  const to = await receiver();
  const pools = new OrganizationPools({ redis: suite.redis.client, prefix, shards });
  suite.registry.put('destination', destinationRecord({ url: to.url }));
  suite.worker({ version: 'default' });
  suite.worker({ version: 'x', pool: 'x' });
  const blocking = blockingConnection(suite.redis.url, { blockMs: taskBlockSeconds * 1000 });
  suite.ends.push(async () => blocking.disconnect());
  const caller = new RedisTaskCaller({ redis: suite.redis.client, blocking, prefix, clock: systemClock, logger: silentLogger });
  const input = { destinationId: 'dst_a', generation: 1, payload: '{}' };
  const tested = () => caller.call(destinationTestTask, { org: 'org_a', credential: 'key_a', input, timeoutMs: 60_000 });
  const makers: string[] = [];
  for (const pool of ['x', defaultPool]) {
    await pools.assign('org_a', pool);
    // Once a worker of the pool lives.
    expect(await eventually(tested)).toMatchObject({ success: true });
    for (let k = 0; k < 15; k++) {
      const count = to.requests.length;
      await queueRun(to.url, { k: makers.length + k });
      await to.arrived(count + 1);
      expect(await tested()).toMatchObject({ success: true });
    }
    makers.push(...Array.from({ length: 31 }, () => `Posthorn/${pool}`));
    expect(to.requests.map(({ headers }) => headers['user-agent'])).toEqual(makers);
  }
});

test('a run of a cron job waits for its pool, and is made by the default one when that serves the organization', async () => {
  const to = await receiver();
  const pools = new OrganizationPools({ redis: suite.redis.client, prefix, shards });
  await pools.assign('org_a', 'x');
  suite.registry.put('organization', organizationRecord({ id: 'org_b' }));
  suite.worker();
  await queueRun(to.url);
  await queueRun(to.url, { org: 'org_b' });
  await to.arrived(1);
  // Nothing else of the default pool is left to do.
  await pools.assign('org_a', defaultPool);
  await to.arrived(2);
  expect(to.requests.map(({ headers }) => headers['x-posthorn-execution'])).toEqual(['exec_org_b_0', 'exec_org_a_0']);
});

async function outcomes(registry: Registry): Promise<number> {
  const metric = registry.getSingleMetric('posthorn_delivery_outcomes_total');
  if (!(metric instanceof Counter)) throw new Error('there is no such counter');
  return (await metric.get()).values.reduce((sum, { value }) => sum + value, 0);
}
