import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { replayIdentity } from '../../src/compile/replay.ts';
import { idOf } from '../../src/controllers/held-ids.ts';
import { RedisReplayRuns } from '../../src/data/replays/redis-replay-runs.ts';
import { newReplayState, type ReplayState } from '../../src/data/replays/replay-state.ts';
import type { ObjectOf, SpecInputOf } from '../../src/resources/kinds.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import type { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import { type ControlPlane, kubernetesAssets, startControlPlane } from '../support/control-plane.ts';
import { controllerApi } from '../support/controller-api.ts';
import { type RunningControllers, startControllers } from '../support/controllers.ts';
import { eventually } from '../support/eventually.ts';
import { kubernetesApi } from '../support/kubernetes-api.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

const prefix = 'run:';
const namespace = 'acme';
let controlPlane: ControlPlane;
let redis: RedisServer;
let api: KubernetesApi;
/** With the rights that the chart gives to the controller. */
let controllersApi: KubernetesApi;
let store: KubernetesStore;
let runs: RedisReplayRuns;
let controllers: RunningControllers;
let org: string;

beforeAll(async () => {
  [controlPlane, redis] = await Promise.all([startControlPlane({ controllerManager: true, crds: true }), startRedis()]);
  await controlPlane.request('POST', '/api/v1/namespaces', { metadata: { name: 'posthorn-system' } });
  [api, controllersApi] = [kubernetesApi(controlPlane), await controllerApi(controlPlane)];
  store = new KubernetesStore({ api, clock: systemClock });
  runs = new RedisReplayRuns({ redis: redis.client, prefix });
  controllers = startControllers({ store: new KubernetesStore({ api: controllersApi, clock: systemClock }), redis: redis.client, prefix });
  await store.apply({ kind: 'Organization', metadata: { name: namespace }, spec: { namespace } }, { manager: 'test' });
  await kubectl('wait', '--for=condition=Ready', `organization/${namespace}`, '--timeout=60s');
  org = idOf('Organization', await store.get('Organization', { name: namespace }));
}, 120_000);
afterAll(async () => {
  await controllers?.stop();
  await Promise.all([api, controllersApi].map((each) => each?.close()));
  await redis?.stop();
  await controlPlane?.stop();
});

async function kubectl(...args: string[]): Promise<string> {
  const all = [`--kubeconfig=${controlPlane.kubeconfigPath}`, '--namespace', namespace, ...args];
  return (await promisify(execFile)(join(kubernetesAssets(), 'kubectl'), all)).stdout;
}

const apply = (name: string, spec: Partial<SpecInputOf<'Replay'>> = {}) =>
  store.apply({ kind: 'Replay', metadata: { namespace, name }, spec: { what: 'deliveries', ...spec } }, { manager: 'test', force: true });

/** A worker records this of the run of the object. */
async function note(object: ObjectOf<'Replay'>, version: number, changes: Partial<ReplayState>): Promise<void> {
  const began = newReplayState(
    { uid: object.metadata.uid, id: idOf('Replay', object), slug: object.metadata.name, what: 'deliveries', isDryRun: false },
    systemClock.now(),
  );
  await runs.save(org, replayIdentity(object, { id: org }), { version, state: { ...began, ...changes } });
}
const plan = { candidates: 3, isEstimate: false, bytes: 300, targets: 1, oldestMs: null };

test('kubectl waits for a replay and shows its progress, which two managers write into one status', async () => {
  const object = await apply('again');
  await kubectl('wait', '--for=condition=Ready', 'replay/again', '--timeout=60s');
  await note(object, 0, {
    phase: 'Running',
    plan,
    queued: 2,
    delivered: 1,
    waiting: { reason: 'CircuitOpen', message: 'The circuit is open.', sinceMs: 0 },
  });
  await kubectl('wait', '--for=condition=Waiting', 'replay/again', '--timeout=60s');
  expect((await kubectl('get', 'replays', '-o', 'wide', '--no-headers')).trim().split(/ +/).slice(0, 9)).toEqual([
    'again',
    'True',
    'Ready',
    'Running',
    '3',
    '2',
    '1',
    '0',
    'CircuitOpen',
  ]);
  await kubectl('patch', 'replay', 'again', '--type', 'merge', '-p', '{"spec":{"suspend":true}}');
  await kubectl('wait', '--for=jsonpath={.status.phase}=Suspended', 'replay/again', '--timeout=60s');
  await kubectl('wait', '--for=jsonpath={.status.observedGeneration}=2', 'replay/again', '--timeout=60s');
  await note(object, 1, { phase: 'Succeeded', plan, queued: 3, delivered: 3, queuedAtMs: systemClock.now(), endedAtMs: systemClock.now() });
  await kubectl('wait', '--for=condition=Complete', 'replay/again', '--timeout=60s');
  const { status } = await store.get('Replay', { namespace, name: 'again' });
  expect(status?.conditions?.map(({ type, status: holds }) => `${type}=${holds}`).sort()).toEqual([
    'Accepted=True',
    'Complete=True',
    'Programmed=True',
    'Queued=True',
    'Ready=True',
    'ResolvedRefs=True',
  ]);
});

test('a replay of event types, applications or endpoints that do not exist does not begin and reports it, until they exist', async () => {
  const resolved = async (name: string) =>
    (await store.get('Replay', { namespace, name })).status?.conditions?.find(({ type }) => type === 'ResolvedRefs');
  const cases: [name: string, filter: SpecInputOf<'Replay'>['filter'], reason: string, message: string][] = [
    ['types', { eventTypes: ['order.paid', 'order.payed'] }, 'EventTypeNotFound', 'event types that do not exist: order.paid, order.payed'],
    ['app', { applicationId: 'app_nobody' }, 'ApplicationNotFound', 'applications that do not exist: app_nobody'],
    ['ep', { endpointIds: ['ep_nobody'] }, 'EndpointNotFound', 'endpoints that do not exist: ep_nobody'],
  ];
  for (const [name, filter, reason, message] of cases) {
    const object = await apply(name, { what: 'messages', filter });
    await kubectl('wait', `--for=jsonpath={.status.conditions[?(@.type=="Ready")].reason}=${reason}`, `replay/${name}`, '--timeout=60s');
    expect(await resolved(name)).toMatchObject({ status: 'False', reason, message: `the filter names ${message}` });
    expect((await store.get('Replay', { namespace, name })).status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'Accepted', status: 'True' }),
    );
    expect(await controllers.registry.get('replay', idOf('Replay', object))).toBeNull();
  }
  const make = (type: string) =>
    store.apply({ kind: 'WebhookEventType', metadata: { namespace, name: type }, spec: { name: type } }, { manager: 'test', force: true });
  await make('order.paid');
  await eventually(async () =>
    expect(await resolved('types')).toMatchObject({ message: 'the filter names event types that do not exist: order.payed' }),
  );
  await make('order.payed');
  await kubectl('wait', '--for=condition=Ready', 'replay/types', '--timeout=60s');
  // It has begun: what it names may go.
  await kubectl('delete', 'webhookeventtypes', 'order.paid', 'order.payed', '--timeout=60s');
  await kubectl('patch', 'replay', 'types', '--type', 'merge', '-p', '{"spec":{"suspend":true}}');
  await kubectl('wait', '--for=jsonpath={.status.observedGeneration}=2', 'replay/types', '--timeout=60s');
  await kubectl('wait', '--for=condition=Ready', 'replay/types', '--timeout=60s');
}, 180_000);

test('a replay continues while no controller runs, and the next one says how far it is and how it ended', async () => {
  const object = await apply('through');
  await kubectl('wait', '--for=condition=Ready', 'replay/through', '--timeout=60s');
  await controllers.stop();
  await note(object, 0, { phase: 'Running', plan, queued: 2, delivered: 1 });
  controllers = startControllers({ store: new KubernetesStore({ api: controllersApi, clock: systemClock }), redis: redis.client, prefix });
  await kubectl('wait', '--for=jsonpath={.status.queued}=2', 'replay/through', '--timeout=60s');
  await controllers.stop();
  await note(object, 1, { phase: 'Succeeded', plan, queued: 3, delivered: 3, queuedAtMs: systemClock.now(), endedAtMs: systemClock.now() });
  controllers = startControllers({ store: new KubernetesStore({ api: controllersApi, clock: systemClock }), redis: redis.client, prefix });
  await kubectl('wait', '--for=condition=Complete', 'replay/through', '--timeout=60s');
  expect((await store.get('Replay', { namespace, name: 'through' })).status).toMatchObject({ phase: 'Succeeded', queued: 3, delivered: 3 });
}, 120_000);

test('a finished replay is deleted when its time is over, and its record goes with it', async () => {
  const object = await apply('short', { ttlSecondsAfterFinished: 0 });
  await kubectl('wait', '--for=condition=Ready', 'replay/short', '--timeout=60s');
  await note(object, 0, { phase: 'Succeeded', plan, endedAtMs: systemClock.now() });
  await kubectl('wait', '--for=delete', 'replay/short', '--timeout=60s');
  await eventually(async () => expect(await controllers.registry.get('replay', idOf('Replay', object))).toBeNull());
});

test('a replay that Git applies again is left as it is; deleted and made again beside other controllers it shows what ran, and reports it', async () => {
  const object = await apply('of-git');
  await kubectl('wait', '--for=condition=Ready', 'replay/of-git', '--timeout=60s');
  await note(object, 0, { phase: 'Succeeded', plan, queued: 3, delivered: 3, queuedAtMs: systemClock.now(), endedAtMs: systemClock.now() });
  await kubectl('wait', '--for=condition=Complete', 'replay/of-git', '--timeout=60s');
  const { uid, generation } = (await apply('of-git')).metadata;
  expect({ uid, generation }).toEqual({ uid: object.metadata.uid, generation: 1 });
  await kubectl('delete', 'replay', 'of-git', '--timeout=60s');
  await controllers.stop();
  const again = await apply('of-git');
  controllers = startControllers({ store: new KubernetesStore({ api: controllersApi, clock: systemClock }), redis: redis.client, prefix });
  expect(again.metadata.uid).not.toBe(uid);
  const reason = '{.status.conditions[?(@.type=="Complete")].reason}';
  await kubectl('wait', `--for=jsonpath=${reason}=AlreadyRan`, 'replay/of-git', '--timeout=60s');
  expect((await store.get('Replay', { namespace, name: 'of-git' })).status).toMatchObject({ phase: 'Succeeded', queued: 3, delivered: 3 });
}, 120_000);
