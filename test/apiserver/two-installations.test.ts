import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { uninstall } from '../../src/cmd/uninstall.ts';
import { KubernetesEventRecorder } from '../../src/controllers/kubernetes-event-recorder.ts';
import { apiKeyPrefix, hashApiKey } from '../../src/core/api-key-hash.ts';
import { PosthornError } from '../../src/core/errors.ts';
import { type ConfigurationKind, configurationKinds, kinds } from '../../src/resources/kinds.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import type { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import type { CompleteStore, Key } from '../../src/store/store.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { type RunningControllers, startControllers } from '../support/controllers.ts';
import { everythingIn, firstOf, readyAs } from '../support/disabled-cases.ts';
import { eventually } from '../support/eventually.ts';
import { kubernetesApi } from '../support/kubernetes-api.ts';
import { silentLogger } from '../support/logger.ts';
import { freePort } from '../support/ports.ts';
import { startProgram } from '../support/program.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

/** Long enough for a write that follows from another to show. */
const quietMs = 3000;
const inNamespace = configurationKinds.filter((kind) => kind !== 'Organization');

interface Installation {
  name: string;
  prefix: string;
  controllers: RunningControllers;
  /** What its controllers have written, Events among them: names of Organizations, and namespaces. */
  wrote: Set<string>;
}

let controlPlane: ControlPlane;
let redis: RedisServer;
let api: KubernetesApi;
let store: KubernetesStore;
let one: Installation;
let two: Installation;
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
beforeEach(() => {
  runs++;
  one = start('default');
  two = start('two');
});
afterEach(async () => {
  await Promise.all([one.controllers.stop(), two.controllers.stop()]);
});

/** The controllers of an installation, on one Redis and with a key prefix of their own. */
function start(name: string): Installation {
  const wrote = new Set<string>();
  const note = (kind: string, { namespace, name: object }: Key): void =>
    void wrote.add(namespace ?? (kind === 'Namespace' ? object : `Organization ${object}`));
  const noting: CompleteStore = {
    get: (kind, key) => store.get(kind, key),
    getMetadata: (kind, key) => store.getMetadata(kind, key),
    getSecret: (key) => store.getSecret(key),
    list: (kind, query) => store.list(kind, query),
    watch: (kind, from, signal, query) => store.watch(kind, from, signal, query),
    create: (object, options) => {
      note(object.kind, object.metadata);
      return store.create(object, options);
    },
    apply: (object, options) => {
      note(object.kind, object.metadata);
      return store.apply(object, options);
    },
    applyStatus: (kind, key, status, options) => {
      note(kind, key);
      return store.applyStatus(kind, key, status, options);
    },
    delete: (kind, key, precondition) => {
      note(kind, key);
      return store.delete(kind, key, precondition);
    },
  };
  const events = new KubernetesEventRecorder({ api, clock: systemClock, logger: silentLogger });
  const prefix = `${name}-${runs}:`;
  const controllers = startControllers({
    store: noting,
    redis: redis.client,
    prefix,
    servedInstallation: name,
    recorder: {
      record: (event) => {
        note(event.object.kind, event.object.metadata);
        events.record(event);
      },
    },
  });
  return { name, prefix, controllers, wrote };
}

const organization = (name: string, installation?: string, spec: object = {}) =>
  store.apply(
    { kind: 'Organization', metadata: { name }, spec: { namespace: name, ...(installation !== undefined && { installation }), ...spec } },
    { manager: 'test', force: true },
  );
const ready = (name: string) => readyAs(store, 'Organization', { name }, 'Ready');

/** An organization with an object of every kind, all of them Ready. */
async function full(name: string, installation?: string): Promise<void> {
  await organization(name, installation, { deletionPolicy: 'Delete' });
  await ready(name);
  for (const object of everythingIn(name)) await store.apply(object, { manager: 'test' });
  for (const kind of inNamespace) await readyAs(store, kind, { namespace: name, name: firstOf(kind) }, 'Ready');
}

async function versions(namespace: string): Promise<string[]> {
  const pages = await Promise.all(inNamespace.map((kind) => store.list(kind, { namespace })));
  const [namespaceObject, object] = await Promise.all([
    store.get('Namespace', { name: namespace }),
    store.get('Organization', { name: namespace }),
  ]);
  const all = [namespaceObject, object, ...pages.flatMap(({ items }) => items)];
  return all.map(({ kind, metadata }) => `${kind} ${metadata.name} ${metadata.resourceVersion}`).sort();
}

/** Versions of what is in a namespace, once they stay as they are. */
const settledVersions = (namespace: string): Promise<string[]> =>
  eventually(async () => {
    const before = await versions(namespace);
    await sleep(quietMs);
    expect(await versions(namespace)).toEqual(before);
    return before;
  }, 60_000);

async function conditionOf(kind: ConfigurationKind, key: Key, type: string): Promise<string | undefined> {
  const { status } = await store.get(kind, key);
  const found = status?.conditions?.find((each) => each.type === type);
  return found && `${found.status} ${found.reason}`;
}

/** By kind, the ids that the controllers have published. */
async function published({ controllers }: Installation): Promise<string[]> {
  const recordKinds = inNamespace.flatMap((kind) => kinds[kind].recordKind ?? []);
  const ids = await Promise.all([...new Set(recordKinds)].map((kind) => controllers.registry.ids(kind)));
  return ids.flat();
}

test('each of two installations serves its own organizations, with everything in their namespaces, and writes nothing of the other', async () => {
  const mine = `one-${runs}`;
  const other = `two-${runs}`;
  await full(mine);
  await full(other, 'two');
  const [before] = await Promise.all([mine, other].map(settledVersions));
  expect([...one.wrote].sort()).toEqual([`Organization ${mine}`, mine]);
  expect([...two.wrote].sort()).toEqual([`Organization ${other}`, other]);
  // By these events come in, jobs run and the API answers.
  const [ids, idsOfOther] = [await published(one), await published(two)];
  expect(ids.length).toBeGreaterThan(5);
  expect(idsOfOther).toHaveLength(ids.length);
  expect(ids.filter((id) => idsOfOther.includes(id))).toEqual([]);
  const labels = await Promise.all([mine, other].map(async (name) => (await store.get('Namespace', { name })).metadata.labels));
  expect(labels.map((each) => each?.['posthorn.dev/installation'])).toEqual([undefined, 'two']);

  // A change of an object, and its end, are none of the other's business.
  for (const kind of ['Destination', 'Route', 'HttpCronJob'] as const) {
    const key = { namespace: other, name: firstOf(kind) };
    await store.apply({ kind, metadata: key, spec: { enabled: false } }, { manager: 'pause', force: true });
    await readyAs(store, kind, key, 'Disabled');
  }
  await store.delete('Organization', { name: other });
  await eventually(() => expect(store.get('Organization', { name: other })).rejects.toThrow(PosthornError), 60_000);
  expect([...one.wrote].sort()).toEqual([`Organization ${mine}`, mine]);
  expect(await versions(mine)).toEqual(before);
}, 240_000);

test('what is there before its Organization is served as soon as that is there, by its installation alone', async () => {
  const name = `early-${runs}`;
  await store.create({ kind: 'Namespace', metadata: { name } }, { manager: 'test' });
  const key = { namespace: name, name: 'orders' };
  await store.create({ kind: 'Source', metadata: key, spec: {} }, { manager: 'test' });
  await eventually(async () => expect(await conditionOf('Source', key, 'Accepted')).toBe('False OrganizationNotFound'));
  // Both see it; what one has reported the other does not repeat.
  await sleep(quietMs);
  const said = await store.get('Source', key);
  await sleep(quietMs);
  expect((await store.get('Source', key)).metadata.resourceVersion).toBe(said.metadata.resourceVersion);
  await organization(name, 'two');
  await readyAs(store, 'Source', key, 'Ready');
  one.wrote.clear();
  await store.apply({ kind: 'Source', metadata: key, spec: { name: 'Orders' } }, { manager: 'test' });
  await readyAs(store, 'Source', key, 'Ready');
  await sleep(quietMs);
  expect([...one.wrote]).toEqual([]);
  const { status } = await store.get('Source', key);
  expect([(await published(one)).includes(status?.id ?? ''), (await published(two)).includes(status?.id ?? '')]).toEqual([false, true]);
}, 120_000);

test.each([
  ['default', 'two'],
  ['two', 'default'],
])(
  'an organization of %s keeps its namespace from one of %s until it is gone',
  async (first, second) => {
    const namespace = `shared-${runs}`;
    await organization(namespace, first);
    await ready(namespace);
    // A creation time has seconds.
    await sleep(1100);
    const late = { name: `late-${runs}` };
    await organization(late.name, second, { namespace });
    await eventually(async () => expect(await conditionOf('Organization', late, 'Accepted')).toBe('False NamespaceTaken'));
    const { status } = await store.get('Organization', late);
    expect(status?.conditions?.find(({ type }) => type === 'Accepted')?.message).toContain('another installation');
    const source = { namespace, name: 'orders' };
    await store.create({ kind: 'Source', metadata: source, spec: {} }, { manager: 'test' });
    await readyAs(store, 'Source', source, 'Ready');
    const latecomer = first === 'default' ? two : one;
    expect([...latecomer.wrote]).toEqual([`Organization ${late.name}`]);
    await store.delete('Organization', { name: namespace });
    await ready(late.name);
    const { id } = (await store.get('Source', source)).status ?? {};
    await eventually(async () => expect(await published(latecomer)).toContain(id));
    expect((await store.get('Namespace', { name: namespace })).metadata.labels).toMatchObject({ 'posthorn.dev/organization': late.name });
  },
  180_000,
);

test('an organization of an installation that is nowhere is left alone by all', async () => {
  const name = `nobody-${runs}`;
  const { metadata } = await organization(name, 'nobody');
  await organization(`one-${runs}`);
  await ready(`one-${runs}`);
  await sleep(quietMs);
  const { metadata: after, status } = await store.get('Organization', { name });
  expect([after.resourceVersion, after.finalizers, status]).toEqual([metadata.resourceVersion, undefined, undefined]);
  await expect(store.get('Namespace', { name })).rejects.toThrow(PosthornError);
});

test.each([
  [undefined, 'two'],
  ['two', 'default'],
])('the installation of an organization cannot be changed from %s to %s', async (before, after) => {
  const name = `fixed-${runs}`;
  await organization(name, before);
  await expect(organization(name, after)).rejects.toMatchObject({
    code: 'VALIDATION_FAILED',
    details: { 'spec.installation': [expect.stringContaining('cannot be changed; make another organization')] },
  });
});

test.each(['Two', '-two', 'two.three', 'a'.repeat(64), ''])('%j is no installation', async (installation) => {
  await expect(organization(`bad-${runs}`, installation)).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
});

test('the API of one installation does not serve the organizations of the other', async () => {
  const [mine, other] = [`one-${runs}`, `two-${runs}`];
  await organization(mine);
  await organization(other, 'two');
  const keys: Record<string, string> = {};
  for (const namespace of [mine, other]) {
    await ready(namespace);
    const key = `ph_${namespace.padEnd(43, 'x')}`;
    keys[namespace] = key;
    const spec = { name: 'Admin', role: 'admin', sha256: hashApiKey(key), prefix: apiKeyPrefix(key) };
    await store.create({ kind: 'ApiKey', metadata: { namespace, name: 'admin' }, spec }, { manager: 'test' });
    await store.create({ kind: 'Source', metadata: { namespace, name: 'orders' }, spec: { name: namespace } }, { manager: 'test' });
    await readyAs(store, 'Source', { namespace, name: 'orders' }, 'Ready');
    await readyAs(store, 'ApiKey', { namespace, name: 'admin' }, 'Ready');
  }
  const id = (await store.get('Source', { namespace: other, name: 'orders' })).status?.id;
  const port = await freePort();
  const program = startProgram(['api'], {
    KUBECONFIG: controlPlane.kubeconfigPath,
    POSTHORN_REDIS_URL: redis.url,
    POSTHORN_REDIS_KEY_PREFIX: one.prefix,
    POSTHORN_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
    POSTHORN_PORT: String(port),
    POSTHORN_OPS_PORT: '0',
  });
  try {
    await program.waitForOutput(/listening/);
    const ask = async (path: string, namespace: string): Promise<{ status: number; text: string }> => {
      const headers = { authorization: `Bearer ${keys[namespace]}` };
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
      return { status: answer.status, text: await answer.text() };
    };
    const list = await eventually(async () => {
      const answer = await ask('/api/sources', mine);
      expect(answer.status).toBe(200);
      return answer;
    });
    expect(list.text).toContain(mine);
    expect(list.text).not.toContain(other);
    expect((await ask(`/api/sources/${id}`, mine)).status).toBe(404);
    expect((await ask(`/api/organizations/${other}/sources`, mine)).status).toBe(404);
    expect((await ask('/api/sources', other)).status).toBe(401);
  } finally {
    await program.stop();
  }
}, 180_000);

test('an organization shares nothing with one of another installation', async () => {
  const [mine, neighbour, other] = [`one-${runs}`, `next-${runs}`, `two-${runs}`];
  await organization(mine);
  await organization(neighbour);
  await organization(other, 'two');
  for (const name of [mine, neighbour, other]) await ready(name);
  const spec = { code: 'payload.id', sharedWith: [neighbour, other] };
  await store.create({ kind: 'Transform', metadata: { namespace: mine, name: 'short' }, spec }, { manager: 'test' });
  for (const namespace of [neighbour, other]) {
    const sharedFrom = { organization: mine, name: 'short' };
    await store.create({ kind: 'Transform', metadata: { namespace, name: 'taken' }, spec: { sharedFrom } }, { manager: 'test' });
  }
  await readyAs(store, 'Transform', { namespace: neighbour, name: 'taken' }, 'Ready');
  const refused = { namespace: other, name: 'taken' };
  await eventually(async () => expect(await conditionOf('Transform', refused, 'ResolvedRefs')).toBe('False RefNotPermitted'));
}, 120_000);

test('uninstall releases the organizations of its installation alone, and refuses while the CRDs would go with those of others', async () => {
  const [mine, other] = [`one-${runs}`, `two-${runs}`];
  await organization(mine);
  await organization(other, 'two', { deletionPolicy: 'Delete' });
  await ready(mine);
  await ready(other);
  const namespace = `system-${runs}`;
  await store.create({ kind: 'Namespace', metadata: { name: namespace } }, { manager: 'test' });
  const lines: string[] = [];
  const options = { api, store, clock: systemClock, namespace, installation: 'two', controller: 'posthorn-controller' };
  const run = (more: { deletesOrganizations: boolean; deletesCrds: boolean }) =>
    uninstall({ ...options, ...more, write: (line) => void lines.push(line) });
  await expect(run({ deletesOrganizations: true, deletesCrds: true })).rejects.toThrow(/nothing is uninstalled.*\(default\)/);
  expect(lines).toEqual([]);
  expect((await store.get('Organization', { name: other })).metadata.finalizers).toEqual(['posthorn.dev/purge']);
  const before = await settledVersions(mine);
  await run({ deletesOrganizations: true, deletesCrds: false });
  await expect(store.get('Organization', { name: other })).rejects.toThrow(PosthornError);
  expect(await versions(mine)).toEqual(before);
  expect((await store.get('Organization', { name: mine })).metadata.finalizers).toEqual(['posthorn.dev/purge']);
}, 180_000);
