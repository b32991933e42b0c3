import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import { Keyring } from '../../core/sealing.ts';
import { webhookSecretSealingContext } from '../../core/sealing-contexts.ts';
import { systemClock } from '../../runtime/clock.ts';
import { RedisMessagePurger } from '../message-purger.ts';
import { registryKeys } from '../registry-keys.ts';
import { RedisWebhookStore } from './redis-webhook-store.ts';
import { resealWebhooks } from './reseal-webhooks.ts';
import { WebhookCandidates } from './webhook-candidates.ts';
import { sharedWebhookKeys, webhookKeys } from './webhook-keys.ts';
import type { WebhookEndpoint } from './webhooks.ts';

const org = 'org_a';
const prefix = 'test:';
let redis: RedisServer;
let store: RedisWebhookStore;
beforeAll(async () => {
  redis = await startRedis();
  store = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger, epoch: 1 });
});
afterAll(() => redis.stop());
beforeEach(() => redis.client.flushall());

/** Something in every key of the store. */
async function fill(organization: string): Promise<void> {
  const application = await store.createApplication({
    org: organization,
    name: 'a',
    externalId: 'x',
    id: `app_${'b'.repeat(26)}`,
    shard: 0,
  });
  const endpoints = [];
  for (let i = 0; i < 2; i++) endpoints.push(await store.createEndpoint(newWebhookEndpoint(application.id, { org: organization })));
  for (const { id } of endpoints) await store.createSubscriptions({ org: organization, endpointId: id }, ['etp_a']);
  const candidates = new WebhookCandidates({ redis: redis.client, prefix });
  expect((await candidates.ofEventType(organization, 'etp_a', 0, 5)).candidates).toHaveLength(2);
  await redis.client.hset(webhookKeys(prefix, organization).doomed, 'a99', '');
  await redis.client.zadd(sharedWebhookKeys(prefix).unfinished, 1, organization);
}

test('an organization that is purged leaves nothing of its webhooks, and the others are untouched', async () => {
  await fill(org);
  await fill('org_b');
  const ofOthers = (await redis.client.keys(`*{wh:org_b}*`)).toSorted();
  expect((await redis.client.keys(`*{wh:${org}}*`)).map((key) => key.slice(`${prefix}{wh:${org}}:`.length)).toSorted()).toEqual(
    webhookKeys(prefix, org)
      .all.map((key) => key.slice(`${prefix}{wh:${org}}:`.length))
      .toSorted(),
  );
  await new RedisMessagePurger({ redis: redis.client, prefix }).purgeOrganization(org, new AbortController().signal);
  expect(await redis.client.keys(`*{wh:${org}}*`)).toEqual([]);
  expect((await redis.client.keys(`*{wh:org_b}*`)).toSorted()).toEqual(ofOthers);
  expect(await redis.client.zrange(sharedWebhookKeys(prefix).unfinished, '0', '-1')).toEqual(['org_b']);
});

test('signing secrets are sealed anew under the newest key, those of a rotation too, and nothing else changes', async () => {
  const [old, next] = [
    { id: 'k1', key: Buffer.alloc(32, 1) },
    { id: 'k2', key: Buffer.alloc(32, 2) },
  ];
  const before = new Keyring([old]);
  const seal = (id: string, plain: string): string => before.seal(plain, webhookSecretSealingContext(org, id));
  const sealSecret = (id: string): WebhookEndpoint['secret'] => ({
    sealed: seal(id, 'newest'),
    prefix: 'whsec_abcd',
    version: 2,
    previous: [{ sealed: seal(id, 'previous'), validUntilMs: 5 }],
  });
  await redis.client.hset(registryKeys(prefix).records('organization'), org, '{}');
  const application = await store.createApplication({ org, name: 'a', shard: 0 });
  const made = await store.createEndpoint(newWebhookEndpoint(application.id, { sealSecret }));
  const foreign = await store.createEndpoint(newWebhookEndpoint(application.id, { sealSecret: () => sealSecret('ep_other') }));
  const keyring = new Keyring([next, old]);
  const complaints: string[] = [];
  const reseal = () => resealWebhooks({ redis: redis.client, prefix, keyring, report: (complaint) => complaints.push(complaint) });
  expect(await reseal()).toBe(1);
  expect(complaints).toHaveLength(2);
  expect(complaints[0]).toContain(foreign.id);
  expect(await store.endpoint(org, foreign.id)).toEqual(foreign);
  const resealed = await store.endpoint(org, made.id);
  expect(resealed).toMatchObject({ ...made, secret: { ...made.secret, sealed: expect.anything(), previous: [{ validUntilMs: 5 }] } });
  const after = new Keyring([next]);
  const open = (sealed = ''): string => after.open(sealed, webhookSecretSealingContext(org, made.id));
  expect([open(resealed?.secret.sealed), open(resealed?.secret.previous[0]?.sealed)]).toEqual(['newest', 'previous']);
  expect(await reseal()).toBe(0);
});
