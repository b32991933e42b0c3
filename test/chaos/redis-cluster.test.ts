import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readConfig } from '../../src/cmd/config.ts';
import { migrate } from '../../src/cmd/migrate.ts';
import { newTimedId } from '../../src/core/ids.ts';
import { RedisStatisticsReader } from '../../src/data/analytics/redis-statistics-reader.ts';
import { seriesPeriods } from '../../src/data/analytics/series-periods.ts';
import { CronExecutions } from '../../src/data/cron/cron-executions.ts';
import { CronDoorbell, CronRuns } from '../../src/data/cron/cron-runs.ts';
import { ArchiveFailures } from '../../src/data/history/archive-failures.ts';
import { MessageArchive } from '../../src/data/history/message-archive.ts';
import { RedisMessageReader } from '../../src/data/history/message-reader.ts';
import { earlierProcesses } from '../../src/data/membership/connected-processes.ts';
import { agreeOnShards } from '../../src/data/membership/shard-count.ts';
import { RedisWorkerDirectory } from '../../src/data/membership/worker-directory.ts';
import { RedisMessageAcceptor } from '../../src/data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { storeLayout } from '../../src/data/registry/store-layout.ts';
import { resultId } from '../../src/data/shard/packed-results.ts';
import { destinationTestTask } from '../../src/data/tasks/destination-test-task.ts';
import { RedisTaskCaller } from '../../src/data/tasks/task-caller.ts';
import { TaskQueue } from '../../src/data/tasks/task-queue.ts';
import type { RedisAddress } from '../../src/redis/address.ts';
import { blockingConnection, commandConnection, type RedisClient } from '../../src/redis/connection.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { startAlertingWorker } from '../support/alerting-worker.ts';
import { eventually } from '../support/eventually.ts';
import { lenientClock } from '../support/lenient-clock.ts';
import { silentLogger } from '../support/logger.ts';
import { newEvent } from '../support/new-event.ts';
import { startReceiver } from '../support/receiver.ts';
import { RecordRegistry } from '../support/record-registry.ts';
import { destinationRecord, organizationRecord, routeRecord } from '../support/records.ts';
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
});
afterAll(async () => {
  for (const client of clients) client.disconnect();
  await cluster?.stop();
});

function blocking(): RedisClient {
  const client = blockingConnection(address, { blockMs: 30_000 });
  clients.push(client);
  return client;
}

test('a task goes to a worker and its answer back, with the commands of the ACL user alone', async () => {
  await new RedisWorkerDirectory({ redis, prefix, shards: 1, version: '1.2.3' }).heartbeat('w1', 1);
  const queue = new TaskQueue({ redis, blocking: blocking(), prefix });
  const caller = new RedisTaskCaller({ redis, blocking: blocking(), prefix, clock: systemClock, logger: silentLogger });
  const woken = queue.wait();
  const input = { destinationId: 'dst_a', generation: 1, payload: null };
  const answered = caller.call(destinationTestTask, { org: 'org_a', credential: 'key_a', input, timeoutMs: 10_000 });
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
  const bell = new CronDoorbell({ redis, blocking: blocking(), prefix });
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
    org: 'org_a',
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
  expect(await executions.newest('org_a', 'cron_a', 10)).toEqual([execution]);
  expect(await runs.lastRunsMs(['cron_a', 'cron_b'])).toEqual([expect.any(Number), null]);
  expect(await runs.lastSlots()).toEqual(new Map([['cron_a', now]]));
  await executions.remove('cron_a');
  await runs.forget('cron_a');
  await eventually(async () => expect(await executions.newest('org_a', 'cron_a', 10)).toEqual([]));
  expect(await executions.write(execution)).toBe(false);
  await executions.allow('cron_a');
  expect(await runs.jobIds()).toEqual([]);
  await runs.endTurn('s1');
  expect((await runs.turn('s2', 10_000)).isOurs).toBe(true);
  bell.close();
});

test('alerts go out and the analytics of all shards are summed', async () => {
  const shards = 3;
  const failing = await startReceiver((response) => response.writeHead(500).end());
  const told = await startReceiver();
  const registry = new RecordRegistry();
  registry.put('organization', organizationRecord());
  const notifications = { onFailure: true, onSuccess: false, onRecovery: false, failureThreshold: 1, channelIds: null, emails: [] };
  const destinations = Array.from({ length: shards }, (_, shard) => ({ id: `dst_${shard}`, shard }));
  registry.put('route', routeRecord({ destinations, notifications }));
  const once = { maxRetries: 0, initialDelayMs: 100, maxDelayMs: 100, backoffMultiplier: 1 };
  for (const { id, shard } of destinations)
    registry.put('destination', destinationRecord({ url: failing.url }, { id, shard, retryPolicy: once }));
  const about = { v: 1, id: 'nch_a', org: 'org_a', slug: 'a', name: 'a', enabled: true, generation: 1 };
  registry.put('notificationChannel', { ...about, channel: { type: 'webhook', url: told.url, headers: [], signingSecrets: [] } });
  const worker = { client: redis, url: '' };
  const stop = startAlertingWorker(worker, { prefix, registry, shards, openBlocking: () => blocking() });
  try {
    const acceptor = new RedisMessageAcceptor({ redis, prefix, clock: lenientClock });
    for (const { id: destinationId, shard } of destinations) {
      const target = { messageId: newTimedId('msg_', shard, Date.now()), routeId: 'rte_a', destinationId, shard, maxAttempts: 1 };
      await acceptor.accept({ ...newEvent(), id: newTimedId('evt_', shard, Date.now()), targets: [target] });
    }
    const [alert] = await told.arrived(1, 30_000);
    expect(JSON.parse(String(alert?.body))).toMatchObject({ type: 'delivery.failed', route: { id: 'rte_a' }, responseStatus: 500 });
    const statistics = new RedisStatisticsReader({ redis, prefix, clock: systemClock, shards: () => shards });
    await eventually(async () => {
      // Not ten seconds later.
      for (let shard = 0; shard < shards; shard++)
        for (const name of await redis.zrange(`${prefix}{s${shard}}:tallies`, '0', '-1'))
          await redis.zadd(`${prefix}{s${shard}}:tallies`, 'XX', 1, name);
      expect((await statistics.ofOrganization('org_a', '1h')).total).toMatchObject({ delivered: 0, failed: shards });
    });
    const nowMs = Date.now();
    const periods = seriesPeriods({ fromMs: nowMs - 3_600_000, toMs: nowMs }, nowMs);
    for (const [subject, failed] of [
      [{ type: 'organization' }, shards],
      [{ type: 'route', id: 'rte_a' }, shards],
      [{ type: 'destination', id: 'dst_1' }, 1],
    ] as const) {
      const { total, points, waiting } = await statistics.series('org_a', subject, periods);
      expect([total.statistics.failed, points.length, waiting]).toEqual([failed, 12, { messages: 0, oldestAtMs: null, scheduled: 0 }]);
    }
    expect((await statistics.series('org_a', { type: 'source', id: 'src_a', routeIds: ['rte_a'] }, periods)).total.events).toBe(shards);
  } finally {
    await stop();
    await Promise.all([failing.close(), told.close()]);
  }
});

test('what has ended is taken into an archive, and goes when it is written', async () => {
  const org = 'org_kept';
  const event = { ...newEvent({ destinations: [], filteredRoutes: ['rte_a'] }), org };
  await new RedisMessageAcceptor({ redis, prefix, clock: lenientClock }).accept(event);
  const archive = new MessageArchive({ redis, prefix, limits: { records: 10, bytes: 1_000_000, ageMs: 0 } });
  await archive.set(org, 'dst_w');
  expect(await archive.settings()).toEqual(new Map([[org, 'dst_w']]));
  while (await archive.gather());
  expect(await archive.take([])).toEqual({ org, destinationId: 'dst_w' });
  const batch = await archive.batch(org, 'w1', { layout: '{}', destinationId: 'dst_w' });
  if (batch === null) throw new Error('there is nothing to write');
  const found: string[] = [];
  for await (const { view } of archive.messages(org, batch)) found.push(view.id);
  expect(found).toEqual([resultId(event.id, 0)]);
  await archive.failed(org, 'no', { firstMs: 1, maxMs: 1 });
  const troubles = new ArchiveFailures({ redis, prefix, shards: 3 });
  expect((await troubles.all()).get(org)?.failing?.message).toBe('no');
  expect(await archive.done(org, batch.id, 1)).toBe(true);
  expect((await troubles.all()).get(org)).toBeUndefined();
  const queue = new RedisDeliveryQueue({ redis, prefix });
  while ((await queue.prune({ finishedMs: -1000, deadLettersMs: 1000 })).hasMore);
  expect(await new RedisMessageReader({ redis, prefix }).delivery(org, found[0] ?? '')).toBeNull();
  await archive.end(org);
});

test('a process of an earlier release is seen on whichever master it works; without one every shard is migrated', async () => {
  const bytes = [0, 1, 2].map((shard) => `${prefix}{s${shard}}:ub`);
  await agreeOnShards({ redis, prefix, known: bytes.length });
  await redis.hset(`${prefix}{cfg}:rec:organization`, 'org_m', '{}');
  for (const key of bytes) await redis.hset(key, 'org_gone', '5');
  const config = readConfig('migrate', {
    POSTHORN_REDIS_URL: address.url,
    POSTHORN_REDIS_MODE: 'cluster',
    POSTHORN_RESOURCE_STORE: 'redis',
  });
  const lines: string[] = [];
  const run = () => migrate(config, (line) => void lines.push(line));
  for (const { port } of await cluster.masters()) {
    const earlier = commandConnection(`redis://posthorn:change-me@127.0.0.1:${port}`, {
      name: `posthorn-delivery-main@${storeLayout - 1}@${encodeURIComponent(prefix)}`,
    });
    clients.push(earlier);
    await earlier.connect();
    await eventually(async () => expect(await run()).toBe(1), 30_000);
    expect(lines[0]).toBe('a process of an earlier release is connected to Redis: delivery at 127.0.0.1');
    earlier.disconnect();
    await eventually(async () => expect(await earlierProcesses({ redis, prefix })).toEqual([]), 30_000);
  }
  for (const key of bytes) expect(await redis.hget(key, 'org_gone')).toBe('5');
  await eventually(async () => expect(await run()).toBe(0), 30_000);
  for (const key of bytes) expect(await redis.hget(key, 'org_gone')).toBeNull();
  expect(await redis.get(`${prefix}{cfg}:layout`)).toMatch(/^\d+$/);
}, 120_000);
