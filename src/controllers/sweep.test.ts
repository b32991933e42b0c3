import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startControllers } from '../../test/support/controllers.ts';
import { eventually } from '../../test/support/eventually.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { alertOrganization } from '../core/alert.ts';
import { webhookOrganization } from '../core/webhook.ts';
import { shardKeys } from '../data/shard/shard-keys.ts';
import { RedisWebhookStore } from '../data/webhooks/redis-webhook-store.ts';
import { systemClock } from '../runtime/system-clock.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';

const prefix = 'test:';
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

test('a leader removes the counters of what was deleted, and of nothing else', async () => {
  const store = new MemoryStore(systemClock);
  const manager = { manager: 'kubectl' };
  let controllers = startControllers({ store, redis: redis.client, prefix });
  await store.apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } }, manager);
  await eventually(() => store.get('Namespace', { name: 'acme' }));
  const spec = { http: { url: 'https://receiver.example/' } };
  await store.apply({ kind: 'Destination', metadata: { name: 'receiver', namespace: 'acme' }, spec }, manager);
  const ids: string[] = [];
  await eventually(async () => {
    const organization = await store.get('Organization', { name: 'acme' });
    const destination = await store.get('Destination', { name: 'receiver', namespace: 'acme' });
    expect(destination.status?.id).toBeDefined();
    ids.splice(0, 2, organization.status?.id ?? '', destination.status?.id ?? '');
  });
  await controllers.stop();
  const [organization = '', destination = ''] = ids;
  const key = shardKeys(prefix, 0).counters(organization);
  await redis.client.hset(key, destination, '1 1 5 1 1', 'dst_gone', '1 1 5 1 1', 'rte_gone', '1 1', 'src_gone', '1 1');
  const webhooks = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger });
  const { id } = await webhooks.createApplication({ org: organization, name: 'Customer', shard: 0 });
  const counted = ['ep_gone', 'app_gone', 'total:app_gone', 'etp_gone', id, `total:${id}`];
  const ofWebhooks = shardKeys(prefix, 0).counters(webhookOrganization(organization));
  const ofAlerts = shardKeys(prefix, 0).counters(alertOrganization(organization));
  await redis.client.hset(ofWebhooks, ...counted.flatMap((field) => [field, '1 1 5 1 1']));
  await redis.client.hset(ofAlerts, 'nch_gone', '1 1 5 1 1', 'mail_rte_gone', '1 1 5 1 1', '~nch_gone', '1 1');
  controllers = startControllers({ store, redis: redis.client, prefix });
  await eventually(async () => expect(await redis.client.hkeys(key)).toEqual([destination]));
  await eventually(async () => expect(await redis.client.hkeys(ofAlerts)).toEqual([]));
  await eventually(async () => expect((await redis.client.hkeys(ofWebhooks)).toSorted()).toEqual([id, `total:${id}`]));
  await controllers.stop();
});
