import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { registryKeys } from '../registry/registry-keys.ts';
import { RedisWebhookStore } from '../webhooks/redis-webhook-store.ts';
import { checkWebhooks } from './webhook-check.ts';

const org = 'org_a';
const prefix = 'test:';
const base = `${prefix}{wh:${org}}:`;
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  await redis.client.hset(registryKeys(prefix).records('organization'), org, '{}');
  const store = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger });
  const id = `app_${'b'.repeat(26)}`;
  await store.createApplication({ org, id, name: 'a', externalId: 'x', shard: 0 });
  for (let i = 0; i < 300; i++) {
    const endpoint = await store.createEndpoint(newWebhookEndpoint(id));
    await store.createSubscriptions({ org, endpointId: endpoint.id, transformId: 'trf_a' }, ['etp_a', 'etp_b']);
  }
});

const complaints = async () =>
  (await checkWebhooks({ redis: redis.client, prefix })).findings.map(({ id, complaint }) => `${id} ${complaint}`);

test('a store that holds together has no findings', async () => {
  expect(await checkWebhooks({ redis: redis.client, prefix })).toEqual({
    applications: 1,
    endpoints: 300,
    subscriptions: 600,
    findings: [],
  });
});

test.each<[string, () => Promise<unknown>, string]>([
  ['an application is lost', () => redis.client.hdel(`${base}ap`, '1'), `${org} webhook endpoint 7 has no application`],
  ['its external id', () => redis.client.hdel(`${base}ax`, 'x'), `${org} webhook application 1 is not found by its external id`],
  ['its name', () => redis.client.del(`${base}an`), `${org} webhook name names are not as many as applications`],
  ['an endpoint is lost', () => redis.client.hdel(`${base}ep`, '7'), `${org} webhook subscription 13 has no endpoint`],
  ['also from its list', () => redis.client.hdel(`${base}ep`, '7'), `${org} webhook list a1:0 lists 7, which is not there`],
  [
    'a subscription is lost',
    () => redis.client.hdel(`${base}sb`, '13'),
    `${org} webhook endpoint 7 lists the subscription 13, which is none of it`,
  ],
  [
    'the subscriptions of an endpoint',
    () => redis.client.hdel(`${base}es`, '7'),
    `${org} webhook subscription 13 is not among those of its endpoint`,
  ],
  [
    'a part of a list',
    () => redis.client.hdel(`${base}ls`, 't1:1'),
    `${org} webhook subscription 599 is not in the list of its event type`,
  ],
  ['a count', () => redis.client.hset(`${base}ls`, 'a1', '299 300'), `${org} webhook list a1 counts 299 members and has 300`],
  ['an event type', () => redis.client.hdel(`${base}tr`, '1'), `${org} webhook subscription 13 has no event type`],
  [
    'a count of a transform',
    () => redis.client.hdel(`${base}tf`, 'trf_a'),
    `${org} webhook subscription 13 has a transform that counts no subscription`,
  ],
  ['an id too many', () => redis.client.hset(`${base}ids`, 'ep_x', '7'), `${org} webhook id ep_x is the id of an object that is gone`],
])('the check finds: %s', async (_, damage, complaint) => {
  await damage();
  expect(await complaints()).toContain(complaint);
});
