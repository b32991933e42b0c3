import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type CrashMoment, crashAtEveryCommand } from '../../../test/support/crashing-client.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { checkWebhooks } from '../check/webhook-check.ts';
import { registryKeys } from '../registry/registry-keys.ts';
import { RedisWebhookStore } from './redis-webhook-store.ts';
import type { WebhookEndpoint } from './webhooks.ts';

const org = 'org_a';
const prefix = 'test:';
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const storeOn = (client: RedisClient) => new RedisWebhookStore({ redis: client, prefix, clock: systemClock, logger: silentLogger });

/** An application with an endpoint that subscribes to one event type. */
async function prepare(): Promise<WebhookEndpoint> {
  await redis.client.flushall();
  // Only those that are there are checked.
  await redis.client.hset(registryKeys(prefix).records('organization'), org, '{}');
  const store = storeOn(redis.client);
  const { id } = await store.createApplication({ org, name: 'Customer', externalId: 'known', shard: 0 });
  const endpoint = await store.createEndpoint(newWebhookEndpoint(id));
  await store.createSubscription({ org, endpointId: endpoint.id, eventTypeId: 'etp_a' });
  return endpoint;
}

const subscribe = (client: RedisClient, { id: endpointId }: WebhookEndpoint) =>
  storeOn(client).createSubscriptions({ org, endpointId, mark: 'mark' }, ['etp_a', 'etp_b', 'etp_c']);
const rotate = (client: RedisClient, { id, secret, revision }: WebhookEndpoint) => {
  const previous = [{ sealed: secret.sealed, validUntilMs: 1 }];
  return storeOn(client).updateEndpoint(org, id, { secret: { sealed: 'new', prefix: 'whsec_efgh', version: 2, previous } }, revision);
};
const upsert = (externalId: string) => (client: RedisClient) =>
  storeOn(client).upsertApplication({ org, externalId, name: 'Upserted', rateLimits: { perSecond: 7 }, shard: 0 });

/** What tells whether it was done, and what is there besides. */
async function state(): Promise<object> {
  const store = storeOn(redis.client);
  const [{ items: applications }, { items: endpoints }, { items: subscriptions }] = await Promise.all([
    store.applications(org, {}, { limit: 100 }),
    store.endpoints(org, {}, { limit: 100 }),
    store.subscriptions(org, {}, { limit: 100 }),
  ]);
  return {
    applications: applications.map(({ externalId, name, rateLimits }) => [externalId, name, rateLimits.perSecond]),
    secrets: endpoints.map(({ secret }) => [secret.prefix, secret.version, secret.previous.length]),
    subscriptions: subscriptions.map(({ eventTypeId }) => eventTypeId),
  };
}

const whole = {
  applications: [['known', 'Customer', 100]],
  secrets: [['whsec_abcd', 1, 0]],
  subscriptions: ['etp_a'],
};
const writes: [string, (client: RedisClient, endpoint: WebhookEndpoint) => Promise<unknown>, object][] = [
  ['subscribing to many event types', subscribe, { ...whole, subscriptions: ['etp_c', 'etp_b', 'etp_a'] }],
  ['replacing a secret', rotate, { ...whole, secrets: [['whsec_efgh', 2, 1]] }],
  [
    'an upsert that makes an application',
    upsert('new'),
    {
      ...whole,
      applications: [
        ['new', 'Upserted', 7],
        ['known', 'Customer', 100],
      ],
    },
  ],
  ['an upsert that changes one', upsert('known'), { ...whole, applications: [['known', 'Upserted', 7]] }],
];

test.each(writes.flatMap(([name, work, done]) => (['before', 'after'] as const).map((moment) => [name, moment, work, done] as const)))(
  '%s is done or not when the process dies %s any of its commands, and done once when it is sent again',
  async (_, moment: CrashMoment, work, done) => {
    await crashAtEveryCommand(redis.client, moment, {
      prepare,
      work,
      look: async (endpoint) => {
        const left = await state();
        expect([whole, done]).toContainEqual(left);
        expect((await checkWebhooks({ redis: redis.client, prefix })).findings).toEqual([]);
        // A rotation that is made already is refused: its revision is over.
        await work(redis.client, endpoint).catch((error: unknown) => expect(error).toMatchObject({ code: 'CONFLICT' }));
        expect(await state()).toEqual(done);
      },
    });
  },
  180_000,
);

test('what subscribed to many event types is answered again to a request with its mark', async () => {
  const endpoint = await prepare();
  const { created } = await subscribe(redis.client, endpoint);
  expect(await subscribe(redis.client, endpoint)).toEqual({ created, skipped: 1 });
});
