import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { startAlertingWorker } from '../../test/support/alerting-worker.ts';
import { type CrashMoment, crashAtEveryCommand } from '../../test/support/crashing-client.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { takeOwnEvents } from '../../test/support/own-events.ts';
import { type Receiver, startReceiver } from '../../test/support/receiver.ts';
import { RecordRegistry } from '../../test/support/record-registry.ts';
import { destinationRecord, organizationRecord, routeRecord, sourceRecord } from '../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { newWebhookEndpoint } from '../../test/support/webhooks.ts';
import type { SourceRecord } from '../core/records.ts';
import { RedisRegistryPublisher } from '../data/registry/registry-publisher.ts';
import { RedisWebhookStore } from '../data/webhooks/redis-webhook-store.ts';
import { webhookKeys } from '../data/webhooks/webhook-keys.ts';
import { WebhookSweeper } from '../data/webhooks/webhook-sweeper.ts';
import type { NewWebhookEndpoint, WebhookEndpoint } from '../data/webhooks/webhooks.ts';
import type { RedisClient } from '../redis/connection.ts';
import { systemClock } from '../runtime/system-clock.ts';

const prefix = 'test:';
const org = 'org_a';
const shards = 2;
const { rotations } = webhookKeys(prefix, org);
let redis: RedisServer;
let registry: RecordRegistry;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(() => prepared());
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const ownSource = sourceRecord({ id: 'src_own', slug: 'posthorn', provider: 'posthorn' });

/** An empty Redis with an endpoint of the organization, and the source if it has one. */
async function prepared(source: SourceRecord | null = ownSource, own: Partial<NewWebhookEndpoint> = {}): Promise<WebhookEndpoint> {
  await redis.client.flushall();
  registry = new RecordRegistry();
  registry.put('organization', organizationRecord());
  const publisher = new RedisRegistryPublisher(redis.client, prefix);
  const epoch = await publisher.mintEpoch();
  for (const record of source === null ? [] : [source]) {
    registry.put('source', record);
    await publisher.publish(epoch, 'source', record);
  }
  const { id } = await storeOn().createApplication({ org, name: 'Customer', shard: 0 });
  return storeOn().createEndpoint(newWebhookEndpoint(id, own));
}
const storeOn = (client: RedisClient = redis.client) =>
  new RedisWebhookStore({ redis: client, prefix, clock: systemClock, logger: silentLogger, shards: () => shards });
const sweep = () => new WebhookSweeper({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger }).sweep();
const noted = () => takeOwnEvents(redis.client, { prefix, shards, registry });

function rotate({ id, secret }: WebhookEndpoint, client?: RedisClient, validUntilMs = 4_000_000_000_000): Promise<WebhookEndpoint> {
  const previous = [{ sealed: secret.sealed, validUntilMs }];
  return storeOn(client).updateEndpoint(org, id, { secret: { sealed: 'sealed anew', prefix: 'whsec_efgh', version: 2, previous } });
}

test('a rotated secret is reported to the routes of the source, as the documented JSON, once, and nothing of the secret with it', async () => {
  const ops: Receiver = await startReceiver();
  ends.push(() => ops.close());
  const endpoint = await prepared();
  registry.put('destination', destinationRecord({ url: ops.url }, { id: 'dst_ops', shard: 1 }));
  registry.put('route', routeRecord({ id: 'rte_ops', sourceId: 'src_own', destinations: [{ id: 'dst_ops', shard: 1 }] }));
  ends.push(startAlertingWorker(redis, { prefix, registry, shards }));
  const { updatedAtMs } = await rotate(endpoint);
  await ops.arrived(1);
  const rotatedAt = new Date(updatedAtMs).toISOString();
  expect(JSON.parse(ops.requests[0]?.body.toString() ?? '')).toEqual({
    type: 'secret.rotated',
    occurredAt: rotatedAt,
    organization: org,
    omitted: 0,
    data: {
      kind: 'endpoint',
      applicationId: endpoint.applicationId,
      endpointId: endpoint.id,
      secretVersion: 2,
      by: 'api',
      rotatedAt,
      previousSecretExpiresAt: '2096-10-02T07:06:40.000Z',
    },
  });
  expect(ops.requests[0]?.body.toString()).not.toMatch(/sealed|whsec/);
  await sweep();
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(ops.requests).toHaveLength(1);
});

describe('a rotation', () => {
  test.each<[string, () => Promise<WebhookEndpoint>, object]>([
    ['that leaves the old secret no time', async () => prepared(), { by: 'api', previousSecretExpiresAt: null }],
    ['through a custom resource', async () => prepared(ownSource, { managedBy: 'acme/endpoint' }), { by: 'resource' }],
  ])('%s reports it', async (_, endpointOf, data) => {
    const { id } = await endpointOf();
    await storeOn().updateEndpoint(org, id, { secret: { sealed: 'sealed anew', prefix: 'whsec_efgh', version: 2, previous: [] } });
    expect((await noted()).map(({ payload }) => payload.data)).toEqual([expect.objectContaining(data)]);
  });

  test.each<[string, SourceRecord | null]>([
    ['no source for it', null],
    ['a disabled source for it', { ...ownSource, enabled: false }],
    ['a source of another provider', sourceRecord()],
  ])('a rotation of an organization with %s is not recorded, and stores nothing', async (_, source) => {
    const endpoint = await prepared(source);
    await storeOn().updateEndpoint(org, endpoint.id, { description: 'changed' });
    const before = await redis.client.keys('*');
    await rotate(endpoint);
    expect((await redis.client.keys('*')).sort()).toEqual(before.sort());
  });

  test('a rotation is reported once for each of many that are made at the same time', async () => {
    const { id, secret } = await prepared();
    const versions = Array.from({ length: 10 }, (_, i) => i + 2);
    await Promise.all(
      versions.map((version) => storeOn().updateEndpoint(org, id, { secret: { ...secret, sealed: `sealed ${version}`, version } })),
    );
    const told = (await noted()).map(({ payload }) => payload.data['secretVersion']);
    expect(told.toSorted((a, b) => Number(a) - Number(b))).toEqual(versions);
    expect(await redis.client.exists(rotations)).toBe(0);
  });

  test.each<CrashMoment>(['before', 'after'])(
    'is one event when the process dies %s any of its commands, and none when it is not made',
    async (moment) => {
      const ids = async () => new Set((await noted()).map(({ id }) => id));
      await crashAtEveryCommand(redis.client, moment, {
        prepare: () => prepared(),
        work: (client, endpoint) => rotate(endpoint, client),
        look: async ({ id }) => {
          await sweep();
          const isRotated = (await storeOn().endpoint(org, id))?.secret.version === 2;
          expect((await ids()).size).toBe(isRotated ? 1 : 0);
          expect(await redis.client.exists(rotations)).toBe(0);
          await sweep();
          expect((await ids()).size).toBe(0);
        },
      });
    },
  );

  test('a rotation is made, and is left pending by no more than 1,000 others', async () => {
    const full = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`ep_${i} 2`, '{}']));
    await crashAtEveryCommand(redis.client, 'after', {
      prepare: async () => {
        const endpoint = await prepared();
        await redis.client.hset(rotations, full);
        return endpoint;
      },
      work: (client, endpoint) => rotate(endpoint, client),
      look: async () => expect(await redis.client.hlen(rotations)).toBe(1000),
    });
  });
});

test('a secret is not rotated by the creation of its endpoint nor by another change', async () => {
  const { id, secret } = await prepared();
  await storeOn().updateEndpoint(org, id, { url: 'https://customer.example/new', isDisabled: true });
  await storeOn().updateEndpoint(org, id, { secret: { ...secret, previous: [{ sealed: 'sealed before', validUntilMs: 1 }] } });
  expect(await noted()).toEqual([]);
});
