import { globSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { recordKinds } from '../../src/core/records.ts';
import { RedisWebhookStore } from '../../src/data/webhooks/redis-webhook-store.ts';
import { blockingConnection } from '../../src/redis/connection.ts';
import { type ConfigurationKind, configurationKinds, kinds } from '../../src/resources/kinds.ts';
import { ManifestApplier } from '../../src/runtime/manifests/apply.ts';
import { parseManifests } from '../../src/runtime/manifests/parse.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import type { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import { RedisStore } from '../../src/store/redis/redis-store.ts';
import type { ApplyObject, CompleteStore } from '../../src/store/store.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { type RunningControllers, startControllers, testKeyring } from '../support/controllers.ts';
import { eventually } from '../support/eventually.ts';
import { kubernetesApi } from '../support/kubernetes-api.ts';
import { silentLogger } from '../support/logger.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

const root = new URL('../../', import.meta.url).pathname;
/** A route without its source. */
const neverReady = ['unresolved'];

/** Every sample, each with an id of its own, as a restore gives it: uids are never equal. */
function samples(): ApplyObject[] {
  const objects = globSync('config/samples/**/*.yaml', { cwd: root }).flatMap(
    (file) => parseManifests(file, readFileSync(root + file, 'utf8')).objects,
  );
  const organization: ApplyObject = { kind: 'Organization', metadata: { name: 'default' }, spec: { namespace: 'default' } };
  const unresolved: ApplyObject = {
    kind: 'Route',
    metadata: { name: 'unresolved', namespace: 'default' },
    spec: { sourceRef: { name: 'nobody' }, destinationRefs: [] },
  };
  return [...objects, organization, unresolved].map((object, i) => {
    const prefix = idPrefixes.get(object.kind);
    if (prefix === undefined) return object;
    const id = `${prefix}${'z'.repeat(23)}${letters[Math.floor(i / letters.length)]}${letters[i % letters.length]}a`;
    return { ...object, metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, 'posthorn.dev/id': id } } };
  });
}
const letters = 'abcdefghijklmnopqrstuvwxyz';
const idPrefixes = new Map<string, string>(configurationKinds.map((kind) => [kind, kinds[kind].idPrefix]));

describe('the same manifests', () => {
  let controlPlane: ControlPlane;
  let redis: RedisServer;
  let api: KubernetesApi;
  let redisStore: RedisStore;
  const worlds: { store: CompleteStore; controllers: RunningControllers; webhooks: RedisWebhookStore }[] = [];

  beforeAll(async () => {
    [controlPlane, redis] = await Promise.all([startControlPlane({ crds: true }), startRedis()]);
    api = kubernetesApi(controlPlane);
    redisStore = new RedisStore({
      redis: redis.client,
      // A server that is blocked for a while is waited for.
      openBlocking: () => blockingConnection(redis.url, { blockMs: 31_000 }),
      keyring: testKeyring,
      clock: systemClock,
      blockMs: 1000,
      prefix: 'standalone:',
    });
    const stores: [string, CompleteStore][] = [
      ['kubernetes:', new KubernetesStore({ api, clock: systemClock })],
      ['standalone:', redisStore],
    ];
    for (const [prefix, store] of stores) {
      const controllers = startControllers({ store, redis: redis.client, prefix });
      const webhooks = new RedisWebhookStore({ redis: redis.client, prefix, clock: systemClock, logger: silentLogger });
      worlds.push({ store, controllers, webhooks });
      const applier = new ManifestApplier(store, { protectedManager: 'nobody' });
      await eventually(async () => expect(await applier.apply(samples())).toEqual([]));
    }
    for (const { store } of worlds) await eventually(async () => expect(await unjudged(store)).toEqual([]));
  }, 120_000);
  afterAll(async () => {
    await Promise.all(worlds.map(({ controllers }) => controllers.stop()));
    redisStore?.close();
    await api?.close();
    await Promise.all([controlPlane?.stop(), redis?.stop()]);
  });

  test('the same manifests give equal records', async () => {
    const [inKubernetes, standalone] = await Promise.all(worlds.map(({ controllers }) => recordsOf(controllers)));
    expect(Object.keys(inKubernetes ?? {}).length).toBeGreaterThan(8);
    expect(standalone).toEqual(inKubernetes);
  });

  test('the same manifests give equal conditions', async () => {
    const [inKubernetes, standalone] = await Promise.all(worlds.map(({ store }) => conditionsOf(store)));
    expect(JSON.stringify(inKubernetes)).toContain('"False"');
    expect(standalone).toEqual(inKubernetes);
  });

  test('the same manifests give equal webhooks, which end alike with their event type', async () => {
    const [inKubernetes, standalone] = await Promise.all(worlds.map((world) => webhooksOf(world)));
    expect(inKubernetes).toEqual([
      [expect.objectContaining({ externalId: 'customer-17' })],
      [expect.objectContaining({ url: 'https://shop-17.example/hooks' })],
      [expect.objectContaining({ filterExpression: "event.data.sku != 'TEST'" })],
    ]);
    expect(standalone).toEqual(inKubernetes);
    for (const world of worlds) {
      await world.store.delete('WebhookEventType', { namespace: 'acme', name: 'order.line-item.added' });
      await eventually(async () => expect((await webhooksOf(world))[2]).toEqual([]));
      await eventually(async () => {
        const { status } = await world.store.get('WebhookSubscription', { namespace: 'acme', name: 'shop-17-line-items' });
        expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'ResolvedRefs', reason: 'EventTypeNotFound' }));
      });
    }
  });
});

/** Applications, endpoints and subscriptions, without what differs from write to write. */
async function webhooksOf({ store, webhooks }: { store: CompleteStore; webhooks: RedisWebhookStore }): Promise<unknown[][]> {
  const org = (await store.get('Organization', { name: 'acme' })).status?.id ?? '';
  const page = { limit: 10 };
  const all = [
    await webhooks.applications(org, {}, page),
    await webhooks.endpoints(org, {}, page),
    await webhooks.subscriptions(org, {}, page),
  ];
  const text = JSON.stringify(all.map(({ items }) => items)).replaceAll(/sealed\.v1\.[\w.-]+/g, 'sealed');
  return JSON.parse(text, (name, value) => (/^(?:created|updated)AtMs$|^revision$/.test(name) ? undefined : value));
}

async function recordsOf({ registry }: RunningControllers): Promise<Record<string, unknown>> {
  const records: Record<string, unknown> = {};
  for (const kind of recordKinds) {
    for (const id of await registry.ids(kind)) {
      // The same value is sealed into another envelope each time.
      const record = JSON.parse(JSON.stringify(await registry.get(kind, id)).replaceAll(/sealed\.v1\.[\w.-]+/g, 'sealed'));
      // The values of references come in the order of the fields, which the API server sorts.
      if (kind === 'credentials') record.values.sort((a: { key: string }, b: { key: string }) => (a.key < b.key ? -1 : 1));
      if (kind === 'replay') {
        // Fields of the object, which each world has made itself.
        delete record.uid;
        delete record.createdAtMs;
      }
      records[`${kind} ${id}`] = record;
    }
  }
  return records;
}

/** Without those of archives, which report at their next check what has become of messages. */
async function conditionsOf(store: CompleteStore): Promise<Record<string, unknown>> {
  const conditions: Record<string, unknown> = {};
  await forEachObject(store, (kind, { metadata, status }) => {
    conditions[`${kind} ${metadata.name}`] = status?.conditions
      ?.filter(({ type }) => type !== 'Archiving')
      .map(({ lastTransitionTime: _, ...rest }) => rest)
      .sort((a, b) => (a.type < b.type ? -1 : 1));
  });
  return conditions;
}

/** Objects not reconciled in their current form, or of which a reference may still come. */
async function unjudged(store: CompleteStore): Promise<string[]> {
  const names: string[] = [];
  await forEachObject(store, (kind, { metadata, status }) => {
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    const isExpected = ready?.status === (neverReady.includes(metadata.name) ? 'False' : 'True');
    const mayChange = ready?.observedGeneration !== metadata.generation || ready?.reason === 'PartiallyInForce';
    if (mayChange || !isExpected) names.push(`${kind} ${metadata.name}: ${ready?.reason} ${ready?.message}`);
  });
  return names;
}

async function forEachObject(
  store: CompleteStore,
  visit: (kind: ConfigurationKind, object: Awaited<ReturnType<typeof store.get<ConfigurationKind>>>) => void,
): Promise<void> {
  for (const kind of configurationKinds) for (const object of (await store.list(kind)).items) visit(kind, object);
}
