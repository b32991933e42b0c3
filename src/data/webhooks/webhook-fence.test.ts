import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { RedisWebhookStore } from './redis-webhook-store.ts';

const org = 'org_a';
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const leader = (epoch?: number) =>
  new RedisWebhookStore({
    redis: redis.client,
    prefix: 'test:',
    clock: systemClock,
    logger: silentLogger,
    ...(epoch !== undefined && { epoch }),
  });

test('once a newer leader has looked at an organization, the one before changes nothing there any more', async () => {
  const [before, after, api] = [leader(5), leader(6), leader()];
  const id = 'app_aaaaaaaaaaaaaaaaaaaaaaaaaa';
  const made = await before.createApplication({ org, id, name: 'One', shard: 0, managedBy: 'acme/shop' });
  const endpoint = await before.createEndpoint(newWebhookEndpoint(id));
  expect(await after.application(org, id)).toEqual(made);
  const refused = { code: 'CONFLICT', details: { epoch: [expect.stringContaining('6')] } };
  await expect(before.updateApplication(org, id, { name: 'Two' })).rejects.toMatchObject(refused);
  await expect(before.createApplication({ org, name: 'Two', shard: 0 })).rejects.toMatchObject(refused);
  await expect(before.createEndpoint(newWebhookEndpoint(id))).rejects.toMatchObject(refused);
  await expect(before.createSubscription({ org, endpointId: endpoint.id, eventTypeId: 'etp_a' })).rejects.toMatchObject(refused);
  await expect(before.deleteApplication(org, id)).rejects.toMatchObject(refused);
  await expect(before.deleteEventType(org, 'etp_a')).rejects.toMatchObject(refused);
  await expect(before.admitEventType(org, 'etp_a')).rejects.toMatchObject(refused);
  expect(await api.application(org, id)).toEqual(made);
  // The API follows no leader.
  expect(await api.updateApplication(org, id, { metadata: { a: 1 } })).toMatchObject({ metadata: { a: 1 } });
  expect((await before.createApplication({ org: 'org_b', name: 'Elsewhere', shard: 0 })).name).toBe('Elsewhere');
  expect((await after.createSubscription({ org, endpointId: endpoint.id, eventTypeId: 'etp_a' })).endpointId).toBe(endpoint.id);
});

test('the custom resources of an organization are known by their ids', async () => {
  const store = leader(9);
  const idOf = (number: number): string => `app_${number.toString(2).replaceAll('0', 'a').replaceAll('1', 'b').padStart(26, 'a')}`;
  const ids = Array.from({ length: 600 }, (_, number) => idOf(number));
  for (const id of ids) await store.createApplication({ org: 'org_c', id, name: id, shard: 0, managedBy: 'acme/x' });
  await store.createApplication({ org: 'org_c', name: 'made', shard: 0 });
  expect((await store.customResourceIds('org_c')).sort()).toEqual(ids.sort());
  await store.deleteApplication('org_c', ids[0] ?? '');
  expect(await store.customResourceIds('org_c')).toHaveLength(599);
});

test('a leader that has written nothing for an organization yet reads what was deleted there', async () => {
  const api = leader();
  const id = 'app_aaaaaaaaaaaaaaaaaaaaaaaaab';
  await api.createApplication({ org: 'org_d', id, name: 'One', shard: 0, managedBy: 'acme/shop' });
  await api.deleteApplication('org_d', id);
  const past = await api.deletedNames('org_d', { applications: [id] });
  expect(past).toEqual(new Map([[id, 'One']]));
  expect(await leader(5).deletedNames('org_d', { applications: [id] })).toEqual(past);
});
