import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { RedisWebhookStore } from './redis-webhook-store.ts';

const org = 'org_a';
const gone = `test:{wh:${org}}:gone`;
let redis: RedisServer;
let store: RedisWebhookStore;
let endpointId: string;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  store = new RedisWebhookStore({ redis: redis.client, prefix: 'test:', clock: systemClock, logger: silentLogger });
  const application = await store.createApplication({ org, name: 'a', shard: 0 });
  endpointId = (await store.createEndpoint(newWebhookEndpoint(application.id))).id;
});

const subscribe = (more: object = {}) => store.createSubscription({ org, endpointId, eventTypeId: 'etp_a', ...more });
const noEventType = { code: 'RESOURCE_NOT_FOUND', message: expect.stringContaining('event type') };
/** The hour, or the minute, of what stands in `gone` passes. */
const passTime = (id: string) => redis.client.zadd(gone, systemClock.now() - 1, id);

test.each([
  ['that has subscriptions', () => subscribe()],
  ['that has none', async () => {}],
])('a request that has seen an event type %s before its deletion makes no subscription after it', async (_, before) => {
  await before();
  await store.deleteEventType(org, 'etp_a');
  await expect(subscribe()).rejects.toMatchObject(noEventType);
  await expect(store.createSubscriptions({ org, endpointId }, ['etp_b', 'etp_a'])).rejects.toMatchObject(noEventType);
  expect((await store.subscriptions(org, {}, { limit: 10 })).items).toEqual([]);
  expect(await store.eventTypeIds(org)).toEqual([]);
});

test('an event type that comes back under its id can be subscribed to', async () => {
  await subscribe();
  await store.deleteEventType(org, 'etp_a');
  await store.admitEventType(org, 'etp_a');
  expect((await subscribe()).eventTypeId).toBe('etp_a');
  expect(await store.eventTypeIds(org)).toEqual(['etp_a']);
});

test('what is kept of deleted event types takes no memory for longer than an hour after the last one', async () => {
  for (const id of ['etp_a', 'etp_b']) await store.deleteEventType(org, id);
  await passTime('etp_a');
  await store.deleteEventType(org, 'etp_c');
  expect(await redis.client.zrange(gone, '0', '-1')).toEqual(['etp_b', 'etp_c']);
  expect(await redis.client.pttl(gone)).toBeGreaterThan(3_500_000);
  expect(await redis.client.pttl(gone)).toBeLessThanOrEqual(3_600_000);
});

test('a transform that subscriptions name is not retired, and the reply has their number', async () => {
  const first = await subscribe({ transformId: 'trf_a' });
  await store.createSubscriptions({ org, endpointId, transformId: 'trf_a' }, ['etp_a', 'etp_b', 'etp_c']);
  expect(await store.retireTransform(org, 'trf_a')).toBe(3);
  await store.updateSubscription(org, first.id, { transformId: 'trf_b', filterExpression: 'true' });
  await store.updateSubscription(org, first.id, { filterExpression: null });
  expect([await store.retireTransform(org, 'trf_a'), await store.retireTransform(org, 'trf_b')]).toEqual([2, 1]);
  await store.deleteEventType(org, 'etp_b');
  await store.deleteSubscription(org, first.id);
  expect([await store.retireTransform(org, 'trf_a'), await store.retireTransform(org, 'trf_b')]).toEqual([1, 0]);
});

test('no subscription may name a transform that is being deleted, until it is known whether it was deleted', async () => {
  const { id } = await subscribe();
  expect(await store.retireTransform(org, 'trf_a')).toBe(0);
  const isBeingDeleted = { code: 'CONFLICT', details: { transformId: ['is being deleted'] } };
  await expect(subscribe({ eventTypeId: 'etp_b', transformId: 'trf_a' })).rejects.toMatchObject(isBeingDeleted);
  await expect(store.updateSubscription(org, id, { transformId: 'trf_a' })).rejects.toMatchObject(isBeingDeleted);
  await passTime('trf_a');
  expect(await store.updateSubscription(org, id, { transformId: 'trf_a' })).toMatchObject({ transformId: 'trf_a' });
});

test('a label that is called t is no transform', async () => {
  await subscribe({ labelFilters: { t: 'trf_a' } });
  expect(await store.retireTransform(org, 'trf_a')).toBe(0);
});
