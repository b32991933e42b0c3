import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { eventually } from '../../../test/support/eventually.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { WebhookControllers } from '../../../test/support/webhook-controllers.ts';
import { newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import { RedisMessagePurger } from '../../data/purge/message-purger.ts';
import { RedisRegistryPublisher } from '../../data/registry/registry-publisher.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { createStoreMetrics } from '../../store/metrics.ts';
import { controllerCaches } from '../controller-caches.ts';
import { idOf } from '../held-ids.ts';
import { sweepEventTypes } from '../webhook-sweep.ts';

let redis: RedisServer;
let world: WebhookControllers;
let endpointId: string;
beforeAll(async () => {
  redis = await startRedis();
  world = new WebhookControllers({ redis: redis.client, prefix: 'test:' });
  await world.begin();
  const application = await world.webhooks.createApplication({ org: world.org, name: 'Made', shard: 0 });
  endpointId = (await world.webhooks.createEndpoint(newWebhookEndpoint(application.id, { org: world.org }))).id;
});
afterAll(async () => {
  await world.stop();
  await redis.stop();
});

const subscribe = (eventTypeId: string) => world.webhooks.createSubscription({ org: world.org, endpointId, eventTypeId });
const stored = (id: string) => world.webhooks.subscription(world.org, id);
const eventType = async (name: string, more: { schema?: string; id?: string } = {}) => {
  const { schema, id } = more;
  return idOf(
    'WebhookEventType',
    await world.apply('WebhookEventType', name, { name, schema }, id === undefined ? {} : { 'posthorn.dev/id': id }),
  );
};

test('an event type that was never accepted takes its subscriptions along, too', async () => {
  const id = await eventType('never', { schema: '{' });
  await world.seen('WebhookEventType', 'never', 'InvalidSchema');
  const subscription = await subscribe(id);
  await world.delete('WebhookEventType', 'never');
  await eventually(async () => expect(await stored(subscription.id)).toBeNull());
});

test('an event type that comes back under its id is subscribed to again', async () => {
  const first = await eventType('back');
  await world.seen('WebhookEventType', 'back');
  const subscription = await subscribe(first);
  await world.delete('WebhookEventType', 'back');
  await eventually(async () => expect(await stored(subscription.id)).toBeNull());
  await eventually(() => expect(subscribe(first)).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' }));
  expect(await eventType('back', { id: first })).toBe(first);
  await world.seen('WebhookEventType', 'back');
  expect((await subscribe(first)).eventTypeId).toBe(first);
});

test('what is left of event types that are gone is deleted by the next leader, and nothing else', async () => {
  const never = await eventType('unknown', { schema: '{' });
  const kept = await subscribe(await eventType('kept'));
  const left = await subscribe(never);
  await world.stop();
  await world.delete('WebhookEventType', 'unknown');
  world.start();
  await eventually(async () => expect(await stored(left.id)).toBeNull());
  expect(await stored(kept.id)).toEqual(kept);
});

test('subscriptions of an event type that the leader has not heard of yet stay', async () => {
  const { store, webhooks, org } = world;
  const fresh = await subscribe(await eventType('fresh'));
  const gone = await subscribe(`etp_${'b'.repeat(26)}`);
  const caches = controllerCaches({
    servedInstallation: null,
    store,
    clock: systemClock,
    logger: silentLogger,
    metrics: createStoreMetrics(new Registry()),
  });
  caches.Organization.upsert(await store.get('Organization', { name: 'acme' }));
  const publisher = { ids: async () => [org], write: <T>(write: () => Promise<T>) => write() };
  await sweepEventTypes({ caches, publisher, webhooks, store, logger: silentLogger }, new AbortController().signal);
  expect([await stored(fresh.id), await stored(gone.id)]).toEqual([fresh, null]);
});

test('what an organization that is gone has left is retracted, and nothing is written for it any more', async () => {
  const { store, org } = world;
  await eventType('last');
  await world.seen('WebhookEventType', 'last');
  await world.stop();
  await store.apply({ kind: 'Organization', metadata: { name: 'acme', finalizers: [] } }, { manager: 'posthorn-controller', force: true });
  await store.delete('Organization', { name: 'acme' });
  await store.delete('Namespace', { name: 'acme' });
  const registry = new RedisRegistryPublisher(redis.client, 'test:');
  await registry.retract(await registry.mintEpoch(), 'organization', org);
  const purger = new RedisMessagePurger({ redis: redis.client, prefix: 'test:' });
  await purger.purgeOrganization(org, new AbortController().signal);
  world.start();
  await eventually(async () => expect(await registry.ids('eventType')).toEqual([]));
  expect(await redis.client.keys(`*{wh:${org}}*`)).toEqual([]);
});
