import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type CrashMoment, crashAtEveryCommand } from '../../../test/support/crashing-client.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { newWebhookEvent } from '../../../test/support/webhook-messages.ts';
import { newWebhookEndpoint } from '../../../test/support/webhooks.ts';
import { Keyring } from '../../core/sealing.ts';
import { webhookHeaderSealingContext, webhookSecretSealingContext } from '../../core/sealing-contexts.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { checkShards } from '../check/shard-check.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import { RedisMessageAcceptor } from '../queue/message-acceptor.ts';
import { registryKeys } from '../registry/registry-keys.ts';
import { RedisWebhookStore } from './redis-webhook-store.ts';
import { resealWebhooks } from './reseal-webhooks.ts';
import { WebhookCandidates } from './webhook-candidates.ts';
import { webhookFields } from './webhook-fields.ts';
import { sharedWebhookKeys, webhookKeys } from './webhook-keys.ts';
import type { WebhookEndpoint } from './webhooks.ts';

const org = 'org_a';
const prefix = 'test:';
const target = { id: 'ep_a', applicationId: 'app_a' };
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
  const template = { org: organization, transformId: 'trf_a' };
  for (const { id } of endpoints) await store.createSubscriptions({ ...template, endpointId: id }, ['etp_a']);
  await store.deleteEventType(organization, 'etp_b', 'b');
  const candidates = new WebhookCandidates({ redis: redis.client, prefix });
  expect((await candidates.ofEventType(organization, 'etp_a', 0, 5)).candidates).toHaveLength(2);
  const { doomed, rotations } = webhookKeys(prefix, organization);
  await redis.client.hset(doomed, `${webhookFields.webhookDoomed.application}99`, '');
  await redis.client.hset(rotations, 'ep_a 2', '{}');
  for (const name of ['mk:0', 'mk:1']) await redis.client.hset(`${prefix}{wh:${organization}}:${name}`, 'mark', '1');
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

test.each<CrashMoment>(['before', 'after'])(
  'an organization whose purge dies %s any of its commands leaves nothing when it is purged again, and the others are untouched',
  async (moment) => {
    const { signal } = new AbortController();
    const purge = (client: RedisClient) => new RedisMessagePurger({ redis: client, prefix }).purgeOrganization(org, signal);
    const keysOf = async (organization: string): Promise<string[]> => (await redis.client.keys(`*${organization}*`)).toSorted();
    const prepare = async (): Promise<string[]> => {
      await redis.client.flushall();
      await fill(org);
      await fill('org_b');
      const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: lenientClock });
      const events = [...Array.from({ length: 25 }, () => org), 'org_b'].map((each) => newWebhookEvent(each, [target]));
      await Promise.all(events.map((event) => acceptor.accept(event)));
      return await keysOf('org_b');
    };
    const look = async (ofOthers: string[]): Promise<void> => {
      await purge(redis.client);
      expect([await keysOf(org), await keysOf('org_b')]).toEqual([[], ofOthers]);
      expect(await checkShards({ redis: redis.client, prefix })).toMatchObject({ findings: [], messages: 1 });
    };
    await crashAtEveryCommand(redis.client, moment, { prepare, work: purge, look });
  },
  180_000,
);

describe('signing secrets', () => {
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
    rotatedBy: 'mark',
  });
  const applicationId = async (): Promise<string> => {
    await redis.client.hset(registryKeys(prefix).records('organization'), org, '{}');
    return (await store.createApplication({ org, name: 'a', shard: 0 })).id;
  };
  const reseal = (client: RedisClient, report: (complaint: string) => void) =>
    resealWebhooks({ redis: client, prefix, keyring: new Keyring([next, old]), report });
  const opened = (keyring: Keyring, { id, secret }: WebhookEndpoint): string[] =>
    [secret, ...secret.previous].map(({ sealed }) => keyring.open(sealed, webhookSecretSealingContext(org, id)));

  test('signing secrets are sealed anew under the newest key, those of a rotation too, and nothing else changes', async () => {
    const made = await store.createEndpoint(newWebhookEndpoint(await applicationId(), { sealSecret }));
    const foreign = await store.createEndpoint(newWebhookEndpoint(made.applicationId, { sealSecret: () => sealSecret('ep_other') }));
    const complaints: string[] = [];
    const report = (complaint: string): void => void complaints.push(complaint);
    expect(await reseal(redis.client, report)).toBe(1);
    expect(complaints).toHaveLength(2);
    expect(complaints[0]).toContain(foreign.id);
    expect(await store.endpoint(org, foreign.id)).toEqual(foreign);
    const resealed = await store.endpoint(org, made.id);
    if (resealed === null) throw new Error('it is gone');
    const envelopes = { sealed: expect.anything(), previous: [{ sealed: expect.anything(), validUntilMs: 5 }] };
    expect(resealed).toEqual({ ...made, secret: { ...made.secret, ...envelopes } });
    expect(opened(new Keyring([next]), resealed)).toEqual(['newest', 'previous']);
    expect(await reseal(redis.client, report)).toBe(0);
  });

  test('and Ed25519 keys are sealed anew, those of a rotation too, with their public keys', async () => {
    const sealSigningKey = (id: string) => ({
      sealed: seal(id, 'key'),
      publicKey: 'whpk_new',
      previous: [{ sealed: seal(id, 'previous key'), publicKey: 'whpk_old', validUntilMs: 5 }],
    });
    const made = await store.createEndpoint(newWebhookEndpoint(await applicationId(), { sealSecret, sealSigningKey }));
    expect(await reseal(redis.client, (complaint) => expect(complaint).toBe(''))).toBe(1);
    const { signingKey } = (await store.endpoint(org, made.id)) ?? {};
    const previous = [{ sealed: expect.anything(), publicKey: 'whpk_old', validUntilMs: 5 }];
    expect(signingKey).toEqual({ sealed: expect.anything(), publicKey: 'whpk_new', previous });
    const resealed = [signingKey, ...(signingKey?.previous ?? [])].map((each) => each?.sealed ?? '');
    const context = webhookSecretSealingContext(org, made.id);
    expect(resealed.map((sealed) => new Keyring([next]).open(sealed, context))).toEqual(['key', 'previous key']);
  });

  test('and sealed headers are sealed anew, each at its place among the others', async () => {
    const sealHeaders = (id: string): WebhookEndpoint['headers'] => [
      { name: 'Authorization', sealed: before.seal('Bearer a', webhookHeaderSealingContext(org, id)) },
      { name: 'X-Shop', value: 'north' },
      { name: 'X-Key', sealed: before.seal('key', webhookHeaderSealingContext(org, id)) },
    ];
    const made = await store.createEndpoint(newWebhookEndpoint(await applicationId(), { sealSecret, sealHeaders }));
    expect((await store.endpoint(org, made.id))?.headers).toEqual(made.headers);
    const report = (complaint: string): never => {
      throw new Error(complaint);
    };
    expect(await reseal(redis.client, report)).toBe(1);
    const context = webhookHeaderSealingContext(org, made.id);
    const headers = (await store.endpoint(org, made.id))?.headers.map(({ name, value, sealed }) => [
      name,
      value ?? new Keyring([next]).open(sealed, context),
    ]);
    expect(headers).toEqual([
      ['Authorization', 'Bearer a'],
      ['X-Shop', 'north'],
      ['X-Key', 'key'],
    ]);
  });

  test.each<CrashMoment>(['before', 'after'])(
    'open, all of them, when the process that seals them anew dies %s any of its commands, and the next finishes it',
    async (moment) => {
      const report = (complaint: string): never => {
        throw new Error(complaint);
      };
      const secrets = async (keyring: Keyring): Promise<string[]> =>
        (await store.endpoints(org, {}, { limit: 10 })).items.flatMap((endpoint) => opened(keyring, endpoint));
      const all = ['newest', 'previous', 'newest', 'previous'];
      await crashAtEveryCommand(redis.client, moment, {
        prepare: async () => {
          await redis.client.flushall();
          const application = await applicationId();
          for (let i = 0; i < 2; i++) await store.createEndpoint(newWebhookEndpoint(application, { sealSecret }));
        },
        work: (client) => reseal(client, report),
        look: async () => {
          expect(await secrets(new Keyring([next, old]))).toEqual(all);
          await reseal(redis.client, report);
          expect(await secrets(new Keyring([next]))).toEqual(all);
        },
      });
    },
  );
});
