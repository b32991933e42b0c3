import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { eventually } from '../../test/support/eventually.ts';
import { silentLogger } from '../../test/support/logger.ts';
import type { ObjectEvent } from '../controllers/event-recorder.ts';
import { hashApiKey } from '../core/api-key-hash.ts';
import { systemClock } from '../runtime/system-clock.ts';
import { ResourceCache } from '../store/cache.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import { createStoreMetrics } from '../store/metrics.ts';
import { Reflector } from '../store/reflector.ts';
import { adminKeySource } from './admin-key-file.ts';
import { bootstrapInstallation } from './bootstrap.ts';
import { release, releaseManager } from './bootstrap-release.ts';

const namespace = 'posthorn-system';
const owner = { manager: 'test', force: true };
const apiKey = `ph_${'k'.repeat(43)}`;
let store: MemoryStore;
let directory: string;
let keyFile: string;
let events: ObjectEvent[];
let complaints: readonly string[] | null;
let ending: AbortController;
let running: Promise<unknown>;
/** Resolves once everything has been applied. */
let applied: PromiseWithResolvers<void>;

beforeEach(async () => {
  store = new MemoryStore(systemClock);
  events = [];
  directory = mkdtempSync(join(tmpdir(), 'posthorn-bootstrap-'));
  write('organization', {
    apiVersion: 'posthorn.dev/v1alpha1',
    kind: 'Organization',
    metadata: { name: 'default' },
    spec: { namespace: 'default' },
  });
  write('pool', {
    apiVersion: 'posthorn.dev/v1alpha1',
    kind: 'DeliveryPool',
    metadata: { name: 'default' },
    spec: { replicas: 3 },
  });
  keyFile = join(directory, 'key');
  writeFileSync(keyFile, `${apiKey}\n`);
  for (const name of [namespace, 'default']) await store.apply({ kind: 'Namespace', metadata: { name } }, owner);
  start();
});
afterEach(async () => {
  await stop();
  rmSync(directory, { recursive: true });
});

const write = (name: string, manifest: object): void => writeFileSync(join(directory, `${name}.yaml`), JSON.stringify(manifest));

function start(installation = 'default'): void {
  ending = new AbortController();
  applied = Promise.withResolvers();
  const { signal } = ending;
  const metrics = createStoreMetrics(new Registry());
  const caches = {
    Organization: new ResourceCache('Organization', { logger: silentLogger }),
    ApiKey: new ResourceCache('ApiKey', { logger: silentLogger }),
    DeliveryPool: new ResourceCache('DeliveryPool', { logger: silentLogger }),
  };
  const reflect = { store, clock: systemClock, logger: silentLogger, metrics };
  running = Promise.all([
    bootstrapInstallation(
      {
        store,
        source: { directory, namespace, installation },
        installation,
        adminKey: adminKeySource({ key: undefined, file: keyFile }),
        changes: Object.values(caches),
        clock: systemClock,
        logger: silentLogger,
        recorder: { record: (event) => void events.push(event) },
        report: (news) => {
          complaints = news;
          if (news?.length === 0) applied.resolve();
        },
      },
      signal,
    ),
    new Reflector({ ...reflect, cache: caches.Organization }).run(signal),
    new Reflector({ ...reflect, cache: caches.ApiKey }).run(signal),
    new Reflector({ ...reflect, cache: caches.DeliveryPool }).run(signal),
  ]);
}

async function stop(): Promise<void> {
  ending.abort();
  await running;
}

const required = [
  ['Organization', { name: 'default' }],
  ['DeliveryPool', { namespace, name: 'default' }],
  ['ApiKey', { namespace: 'default', name: 'admin' }],
] as const;
const uidOf = async ([kind, key]: (typeof required)[number]): Promise<string> => (await store.get(kind, key)).metadata.uid;

test('what an installation must have is made, and made again with an event when it is deleted', async () => {
  await applied.promise;
  expect(events).toEqual([]);
  for (const each of required) {
    const before = await uidOf(each);
    await store.delete(each[0], each[1]);
    await eventually(async () => expect(await uidOf(each)).not.toBe(before));
  }
  await eventually(() =>
    expect(events.map(({ object, type, reason }) => [object.kind, type, reason])).toEqual(
      required.map(([kind]) => [kind, 'Warning', 'MadeAgain']),
    ),
  );
  expect((await store.get('DeliveryPool', { namespace, name: 'default' })).spec.replicas).toBe(3);
});

test('the admin key of an organization that others create is no complaint, and is applied once that exists', async () => {
  await stop();
  rmSync(join(directory, 'organization.yaml'));
  store = new MemoryStore(systemClock);
  for (const name of [namespace, 'shop']) await store.apply({ kind: 'Namespace', metadata: { name } }, owner);
  start();
  await applied.promise;
  expect(complaints).toEqual([]);
  await store.apply({ kind: 'Organization', metadata: { name: 'default' }, spec: { namespace: 'shop' } }, owner);
  await eventually(async () => expect(await store.get('ApiKey', { namespace: 'shop', name: 'admin' })).toBeDefined());
});

test('another installation than default begins with an organization of its name, and its admin key is there', async () => {
  await stop();
  rmSync(join(directory, 'organization.yaml'));
  store = new MemoryStore(systemClock);
  write('organization', {
    apiVersion: 'posthorn.dev/v1alpha1',
    kind: 'Organization',
    metadata: { name: 'two' },
    spec: { namespace: 'shop' },
  });
  for (const name of [namespace, 'shop', 'default']) await store.apply({ kind: 'Namespace', metadata: { name } }, owner);
  await store.apply({ kind: 'Organization', metadata: { name: 'default' }, spec: { namespace: 'default' } }, owner);
  start('two');
  await applied.promise;
  expect((await store.get('Organization', { name: 'two' })).spec.installation).toBe('two');
  expect((await store.list('ApiKey')).items.map(({ metadata }) => metadata.namespace)).toEqual(['shop']);
});

test('no admin key comes into the organization of another installation that has the name', async () => {
  await stop();
  rmSync(join(directory, 'organization.yaml'));
  store = new MemoryStore(systemClock);
  for (const name of [namespace, 'two']) await store.apply({ kind: 'Namespace', metadata: { name } }, owner);
  await store.apply({ kind: 'Organization', metadata: { name: 'two' }, spec: { namespace: 'two' } }, owner);
  start('two');
  await eventually(() => expect(complaints).toEqual(['the admin key: the Organization two belongs to the installation default']));
  expect((await store.list('ApiKey')).items).toEqual([]);
});

test('an object that is released before its deletion is not made again, and others still are', async () => {
  await applied.promise;
  const [organization, pool, key] = required;
  const before = await uidOf(key);
  await store.apply({ kind: pool[0], metadata: { ...pool[1], ...release } }, { manager: releaseManager, force: true });
  await store.delete(pool[0], pool[1]);
  await store.delete(key[0], key[1]);
  await eventually(async () => expect(await uidOf(key)).not.toBe(before));
  await expect(store.get(pool[0], pool[1])).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
  await stop();
  start();
  await eventually(() => uidOf(pool));
  expect(await uidOf(organization)).toBeDefined();
});

test('the number of workers is left to another owner, and every other field is taken over; both are reported', async () => {
  const pool = async () => (await store.get('DeliveryPool', { namespace, name: 'default' })).spec;
  write('pool', {
    apiVersion: 'posthorn.dev/v1alpha1',
    kind: 'DeliveryPool',
    metadata: { name: 'default' },
    spec: { replicas: 3, concurrency: 7 },
  });
  const again = async (): Promise<void> => {
    await stop();
    events.length = 0;
    start();
    await applied.promise;
  };
  await applied.promise;
  await again();
  expect(await pool()).toMatchObject({ replicas: 3, concurrency: 7 });
  await store.apply(
    { kind: 'DeliveryPool', metadata: { namespace, name: 'default' }, spec: { replicas: 5, concurrency: 9 } },
    { manager: 'kubectl', force: true },
  );
  await again();
  expect(await pool()).toMatchObject({ replicas: 5, concurrency: 7 });
  expect(events.map(({ object, reason, message }) => [object.kind, reason, message]).sort()).toEqual([
    ['DeliveryPool', 'FieldLeft', 'spec.replicas is managed by "kubectl"; the value of the installation is not applied'],
    ['DeliveryPool', 'FieldTakenOver', 'spec.concurrency was changed by "kubectl"; the value of the installation is applied again'],
  ]);
  // Its owner gives it back.
  await store.apply({ kind: 'DeliveryPool', metadata: { namespace, name: 'default' }, spec: {} }, { manager: 'kubectl', force: true });
  await again();
  expect(await pool()).toMatchObject({ replicas: 3, concurrency: 7 });
  expect(events).toEqual([]);
});

test('another admin key in the file replaces the earlier one, and what is no key leaves it in force and is reported', async () => {
  await applied.promise;
  const hash = async () => (await store.get('ApiKey', { namespace: 'default', name: 'admin' })).spec.sha256;
  expect(await hash()).toBe(hashApiKey(apiKey));
  writeFileSync(keyFile, 'too short');
  await eventually(
    () => expect(complaints).toEqual([expect.stringMatching(/^the admin key: \S+key must have at least 32 characters/)]),
    60_000,
  );
  expect(await hash()).toBe(hashApiKey(apiKey));
  for (const letter of ['m', 'n']) {
    const another = `ph_${letter.repeat(43)}`;
    writeFileSync(keyFile, `${another}\n`);
    await eventually(async () => expect([await hash(), complaints]).toEqual([hashApiKey(another), []]), 60_000);
  }
}, 200_000);
