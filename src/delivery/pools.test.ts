import { expect, test } from '@jest/globals';
import { Counter, Registry } from 'prom-client';
import { deliverySuite } from '../../test/support/delivery-suite.ts';
import { destinationPerShard } from '../../test/support/destination-per-shard.ts';
import { passes } from '../../test/support/passes.ts';
import { defaultPool } from '../core/default-pool.ts';
import { OrganizationPools } from '../data/organization-pools.ts';
import { checkShards } from '../data/shard-check.ts';

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
  await passes(() => expect(new Set(to.requests.map(({ headers }) => headers['webhook-id']))).toEqual(new Set(sent)));
  expect(to.requests).toHaveLength(sent.length);
  expect((await checkShards({ redis: suite.redis.client, prefix, shards })).findings).toEqual([]);
  for (const registry of Object.values(metrics)) expect(await outcomes(registry)).toBeGreaterThan(0);
});

async function outcomes(registry: Registry): Promise<number> {
  const metric = registry.getSingleMetric('posthorn_delivery_outcomes_total');
  if (!(metric instanceof Counter)) throw new Error('there is no such counter');
  return (await metric.get()).values.reduce((sum, { value }) => sum + value, 0);
}
