import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { PoolReports } from '../../src/data/membership/pool-reports.ts';
import { type ControlPlaneWorld, startControlPlaneWorld } from '../e2e/control-plane-world.ts';
import { eventually } from '../support/eventually.ts';

let world: ControlPlaneWorld;
beforeAll(async () => {
  world = await startControlPlaneWorld();
}, 120_000);
afterAll(() => world?.stop());

test('the leading controller reports the DeliveryPools of its namespace with the rights that it has', async () => {
  const controller = world.start('controller');
  const reports = new PoolReports({ redis: world.redis.client, prefix: 'posthorn:' });
  await eventually(`a report (${controller.output()})`, 60_000, async () => {
    expect(await reports.read()).toEqual([
      {
        name: 'default',
        replicas: { wanted: 0, ready: 0 },
        conditions: expect.arrayContaining([expect.objectContaining({ type: 'Ready' })]),
      },
    ]);
    return true;
  });
  expect(await world.redis.client.pttl('posthorn:{workers}:pools')).toBeGreaterThan(0);
  expect(world.forbidden()).toEqual([]);
});
