import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { reportPools } from '../../src/controllers/delivery-pool/report-pools.ts';
import { PoolReports } from '../../src/data/membership/pool-reports.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { eventually } from '../support/eventually.ts';
import { silentLogger } from '../support/logger.ts';
import { namespace, PoolWorld } from '../support/pool-world.ts';
import { startRedis } from '../support/redis.ts';

let world: PoolWorld;
beforeAll(async () => {
  world = await PoolWorld.start();
}, 120_000);
afterAll(() => world?.stop());

test('a missing pool that an organization waits for is measured as one without workers, and no other', async () => {
  world.backlog = { messages: 12, oldestAgeSeconds: 60 };
  await world.store.apply(
    { kind: 'Organization', metadata: { name: 'waiting' }, spec: { namespace: 'waiting' } },
    { manager: 'test', force: true },
  );
  await eventually(async () =>
    expect(await world.measured('default')).toEqual({ wanted: 0, ready: 0, available: 0, backlog_messages: 12 }),
  );
  await world.apply('default', { replicas: 2 });
  await eventually(async () => expect(await world.measured('default')).toMatchObject({ wanted: 2 }));
  await world.store.delete('DeliveryPool', { namespace, name: 'default' });
  await eventually(async () => expect(world.pool('default')).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' }));
  await eventually(async () => expect(await world.measured('default')).toMatchObject({ wanted: 0, ready: 0, available: 0 }));
  for (const { metadata } of (await world.store.list('Organization')).items)
    await world.store.delete('Organization', { name: metadata.name });
  await eventually(async () => expect(await world.measured('default')).toEqual({}));
  world.backlog = { messages: 0, oldestAgeSeconds: 0 };
});

test('a pool says of its HorizontalPodAutoscaler that it cannot scale, and nothing of it without', async () => {
  await world.apply('scaled', { autoscaling: { mode: 'hpa', min: 1, max: 9 } });
  // There is no adapter that serves the metric.
  const { status } = await world.shows('scaled', 'Autoscaling', 'False FailedGetExternalMetric');
  expect(status?.conditions?.find(({ type }) => type === 'Autoscaling')?.message).toContain('posthorn_backlog_messages');
  await world.apply('scaled', { replicas: 1 });
  await eventually(async () =>
    expect((await world.pool('scaled')).status?.conditions?.map(({ type }) => type)).not.toContain('Autoscaling'),
  );
});

test('the API gets wanted and ready replicas and the conditions of each pool', async () => {
  await world.apply('reported', { replicas: 3 });
  await world.shows('reported', 'Accepted', 'True Accepted');
  const redis = await startRedis();
  const ending = new AbortController();
  const reports = new PoolReports({ redis: redis.client, prefix: 'test:' });
  const reporting = reportPools({ cache: world.pools, namespace, reports, clock: systemClock, logger: silentLogger }, ending.signal);
  try {
    await eventually('the pool to be reported as its status has it', 30_000, async () => {
      const told = (await reports.read())?.find(({ name }) => name === 'reported');
      const { conditions = [] } = (await world.pool('reported')).status ?? {};
      expect(conditions.map(({ type }) => type)).toContain('Ready');
      const shown = conditions.map(({ observedGeneration, ...condition }) => condition);
      expect(told).toEqual({ name: 'reported', replicas: { wanted: 3, ready: 0 }, conditions: shown });
      return true;
    });
  } finally {
    ending.abort();
    await reporting;
    await redis.stop();
  }
});
