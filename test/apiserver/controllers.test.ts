import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { idOf } from '../../src/controllers/held-ids.ts';
import { KubernetesEventRecorder } from '../../src/controllers/kubernetes-event-recorder.ts';
import { recordSealingContext } from '../../src/core/sealing-contexts.ts';
import type { Kind, ObjectOf, PosthornKind } from '../../src/resources/kinds.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import type { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import type { ApplyObject, Key } from '../../src/store/store.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { type RunningControllers, startControllers, testKeyring } from '../support/controllers.ts';
import { everythingIn, firstOf, readyAs, switchedKinds } from '../support/disabled-cases.ts';
import { eventually } from '../support/eventually.ts';
import { kubernetesApi } from '../support/kubernetes-api.ts';
import { silentLogger } from '../support/logger.ts';
import { httpSettings } from '../support/records.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

const traces = readFileSync(new URL('../e2e/traces.lua', import.meta.url), 'utf8');
/** Long enough for a write that follows from another to show. */
const quietMs = 3000;

describe('controllers on a real API server', () => {
  let controlPlane: ControlPlane;
  let redis: RedisServer;
  let api: KubernetesApi;
  let store: KubernetesStore;
  let namespace: string;
  let controllers: RunningControllers;
  let runs = 0;

  beforeAll(async () => {
    [controlPlane, redis] = await Promise.all([startControlPlane({ controllerManager: true, crds: true }), startRedis()]);
    api = kubernetesApi(controlPlane);
    store = new KubernetesStore({ api, clock: systemClock });
  }, 120_000);
  afterAll(async () => {
    await api.close();
    await redis.stop();
    await controlPlane.stop();
  });
  beforeEach(async () => {
    namespace = `org-${++runs}`;
    controllers = start();
    await apply({ kind: 'Organization', metadata: { name: namespace }, spec: { namespace } });
    await expectReady('Organization', { name: namespace });
  });
  afterEach(() => controllers.stop());

  const start = (): RunningControllers =>
    startControllers({
      store,
      redis: redis.client,
      prefix: `run${runs}:`,
      recorder: new KubernetesEventRecorder({ api, clock: systemClock, logger: silentLogger }),
    });
  const apply = <K extends Kind>(object: ApplyObject<K>): Promise<ObjectOf<K>> => store.apply(object, { manager: 'test', force: true });
  const named = (name: string): Key & { namespace: string } => ({ namespace, name });
  const source = () => apply({ kind: 'Source', metadata: named('orders'), spec: {} });
  const destination = (http: object = {}) =>
    apply({ kind: 'Destination', metadata: named('shop'), spec: { http: { url: 'https://shop.example', ...http } } });
  const route = () =>
    apply({ kind: 'Route', metadata: named('all'), spec: { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'shop' }] } });
  const secret = (value: string) =>
    apply({ kind: 'Secret', metadata: named('token'), data: { value: Buffer.from(value).toString('base64') } });

  const expectReady = (kind: PosthornKind, key: Key, ready = 'True Ready'): Promise<void> =>
    eventually(async () => {
      const { metadata, status } = await store.get(kind, key);
      const condition = status?.conditions?.find(({ type }) => type === 'Ready');
      expect(`${condition?.status} ${condition?.reason}`).toBe(ready);
      expect(condition?.observedGeneration).toBe(metadata.generation);
    });
  const tracesOf = (ids: string[]): Promise<unknown> => redis.client.eval(traces, 0, ...ids);
  const versions = async (): Promise<string[]> => {
    const kinds = ['Organization', 'Source', 'Destination', 'Route', 'Namespace'] as const;
    const pages = await Promise.all(kinds.map((kind) => store.list(kind)));
    return pages.flatMap(({ items }) => items.map(({ kind, metadata }) => `${kind} ${metadata.name} ${metadata.resourceVersion}`)).sort();
  };

  /** `wanted`: type, reason and count of each. */
  const expectEventsOfRoutes = (wanted: readonly string[]): Promise<void> =>
    eventually(async () => {
      const events = (await controlPlane.request('GET', `/api/v1/namespaces/${namespace}/events`)) as { items: EventObject[] };
      const ofRoutes = events.items.filter(({ involvedObject }) => involvedObject.kind === 'Route');
      expect(ofRoutes.map(({ type, reason, count }) => `${type} ${reason} ${count}`).sort()).toEqual(wanted);
    });

  test('a route is ready once its source and destination are there, and says why it was not by an Event', async () => {
    await route();
    await expectReady('Route', named('all'), 'False SourceNotFound');
    await source();
    await expectReady('Route', named('all'), 'False DestinationNotFound');
    await destination();
    await expectReady('Route', named('all'));
    await expectEventsOfRoutes(['Normal Ready 1', 'Warning DestinationNotFound 1', 'Warning SourceNotFound 1']);
  });

  test('a route without a destination in force is not ready, with one of two it is partially in force, and says each once by an Event', async () => {
    const other = named('other');
    await source();
    await destination({ auth: { type: 'bearer', tokenSecretRef: { name: 'token', key: 'value' } } });
    await route();
    await expectReady('Route', named('all'), 'False DestinationNotReady');
    await apply({ kind: 'Destination', metadata: other, spec: { http: { url: 'https://other.example' } } });
    const destinationRefs = [{ name: 'shop' }, { name: 'other' }];
    await apply({ kind: 'Route', metadata: named('all'), spec: { sourceRef: { name: 'orders' }, destinationRefs } });
    await expectReady('Route', named('all'), 'True PartiallyInForce');
    expect((await store.get('Route', named('all'))).status?.conditions).toContainEqual(
      expect.objectContaining({
        type: 'ResolvedRefs',
        status: 'False',
        reason: 'DestinationNotReady',
        message: 'Destinations that are not ready: shop (SecretNotFound)',
      }),
    );
    await secret('first');
    await expectReady('Route', named('all'));
    await expectEventsOfRoutes(['Normal Ready 1', 'Warning DestinationNotReady 1', 'Warning PartiallyInForce 1']);
  });

  test('a disabled object of each kind is Ready as Disabled, and says who disabled it and when', async () => {
    for (const object of everythingIn(namespace)) await store.apply(object, { manager: 'argocd-controller' });
    for (const kind of switchedKinds) {
      const key = named(firstOf(kind));
      await readyAs(store, kind, key, 'Ready');
      await store.apply({ kind, metadata: key, spec: { enabled: false } }, { manager: 'posthorn-api', force: true });
      const { message } = await readyAs(store, kind, key, 'Disabled');
      const { metadata } = await store.get(kind, key);
      const time = metadata.managedFields?.find(
        ({ manager, subresource }) => manager === 'posthorn-api' && subresource === undefined,
      )?.time;
      expect([kind, message]).toEqual([kind, `disabled by posthorn-api at ${time}; the current generation is programmed`]);
    }
  });

  test('an edit of a Secret changes the record', async () => {
    await secret('first');
    const made = await destination({ auth: { type: 'bearer', tokenSecretRef: { name: 'token', key: 'value' } } });
    await expectReady('Destination', named('shop'));
    await secret('second');
    const id = idOf('Destination', made);
    const organization = idOf('Organization', await store.get('Organization', { name: namespace }));
    await eventually(async () => {
      const auth = httpSettings(await controllers.registry.get('destination', id)).auth;
      if (auth?.type !== 'bearer') throw new Error('no record yet');
      expect(testKeyring.open(auth.token, recordSealingContext(organization, 'destination', id, 'token'))).toBe('second');
    });
  });

  test('what the plan does not have any more is suspended, until it has it again', async () => {
    const plan = (wanted: 'free' | 'pro') =>
      apply({ kind: 'Organization', metadata: { name: namespace }, spec: { namespace, plan: wanted } });
    await plan('pro');
    const throttle = { mode: 'concurrency', maxConcurrency: 1 } as const;
    const shop = await apply({ kind: 'Destination', metadata: named('shop'), spec: { http: { url: 'https://shop.example' }, throttle } });
    const report = await apply({
      kind: 'HttpCronJob',
      metadata: named('report'),
      spec: { schedule: '0 6 * * *', url: 'https://a.example/', useStaticIp: true },
    });
    const records = async () =>
      await Promise.all([
        controllers.registry.get('destination', idOf('Destination', shop)),
        controllers.registry.get('cronJob', idOf('HttpCronJob', report)),
      ]);
    for (const [wanted, ready, enabled] of [
      ['pro', 'True Ready', true],
      ['free', 'False PlanTooLow', false],
      ['pro', 'True Ready', true],
    ] as const) {
      await plan(wanted);
      await expectReady('Destination', named('shop'), ready);
      await expectReady('HttpCronJob', named('report'), ready);
      expect(await records()).toMatchObject([{ enabled }, { enabled }]);
    }
  });

  test('nothing is written once everything is in force, nor by a controller that restarts', async () => {
    await source();
    await destination();
    await route();
    await expectReady('Route', named('all'));
    await expectReady('Destination', named('shop'));
    await expectReady('Source', named('orders'));
    const settled = await eventually(async () => {
      const before = await versions();
      await sleep(quietMs);
      expect(await versions()).toEqual(before);
      return before;
    });
    await controllers.stop();
    controllers = start();
    await sleep(quietMs);
    expect(await versions()).toEqual(settled);
  });

  test('what others own of a status stays', async () => {
    await destination();
    await expectReady('Destination', named('shop'));
    const delivering = { type: 'Delivering', status: 'True', reason: 'Healthy', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
    await store.applyStatus(
      'Destination',
      named('shop'),
      { circuit: { state: 'open' }, conditions: [delivering] },
      { manager: 'posthorn-health' },
    );
    await destination({ timeoutMs: 1000 });
    await expectReady('Destination', named('shop'));
    const { status } = await store.get('Destination', named('shop'));
    expect(status?.circuit).toEqual({ state: 'open' });
    expect(status?.conditions?.map(({ type }) => type).sort()).toEqual(['Accepted', 'Delivering', 'Programmed', 'Ready', 'ResolvedRefs']);
  });

  test('a leader that another has followed publishes nothing more', async () => {
    const made = await source();
    await expectReady('Source', named('orders'));
    await controllers.registry.mintEpoch();
    await apply({ kind: 'Source', metadata: named('orders'), spec: { name: 'renamed' } });
    await expect(controllers.ended).rejects.toMatchObject({ code: 'CONFLICT' });
    expect(await controllers.registry.get('source', idOf('Source', made))).toMatchObject({ name: 'orders' });
  });

  test('deleting the namespace leaves nothing of the organization behind in Redis', async () => {
    const ids = [
      idOf('Organization', await store.get('Organization', { name: namespace })),
      idOf('Source', await source()),
      idOf('Destination', await destination()),
      idOf('Route', await route()),
    ];
    await expectReady('Route', named('all'));
    expect(await tracesOf(ids)).not.toEqual([]);
    await store.delete('Namespace', { name: namespace });
    await expectReady('Organization', { name: namespace }, 'False NamespaceGone');
    await eventually(async () => expect(await tracesOf(ids)).toEqual([]));
  });

  test('deleting the Organization takes its namespace along', async () => {
    await apply({ kind: 'Organization', metadata: { name: namespace }, spec: { namespace, deletionPolicy: 'Delete' } });
    const made = await source();
    await expectReady('Source', named('orders'));
    await store.delete('Organization', { name: namespace });
    await eventually(async () => {
      await expect(store.get('Organization', { name: namespace })).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
      await expect(store.get('Namespace', { name: namespace })).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
    });
    expect(await tracesOf([idOf('Source', made)])).toEqual([]);
  });
});

interface EventObject {
  type: string;
  reason: string;
  count: number;
  involvedObject: { kind: string };
}
