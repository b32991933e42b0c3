import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { eventually } from '../../../test/support/eventually.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { MemoryStore } from '../../store/memory/memory-store.ts';
import { systemClock } from '../system-clock.ts';
import { ManifestApplier } from './apply.ts';
import { ManifestsDirectory, type ManifestsLoad } from './directory.ts';

const head = 'apiVersion: posthorn.dev/v1alpha1\nkind:';
const organization = `${head} Organization\nmetadata: {name: acme}\nspec: {namespace: acme-hooks}\n`;
const resources = {
  ApiKey: `spec: {name: CI, sha256: "${'0'.repeat(64)}", role: developer, scopes: [read]}`,
  Source: 'spec: {name: Shop, provider: generic}',
  Destination: 'spec: {type: http, http: {url: "https://shop.example.com/"}}',
  WebhookEventType: 'spec: {name: order.paid}',
};

let directory = '';
let loads: ManifestsLoad[] = [];
let stopping = new AbortController();
let running = Promise.resolve();
let store = new MemoryStore(systemClock);
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'posthorn-manifests-'));
  loads = [];
  stopping = new AbortController();
  store = new MemoryStore(systemClock);
});
afterEach(async () => {
  stopping.abort();
  await running;
  rmSync(directory, { recursive: true, force: true });
});

function start(): void {
  const applier = new ManifestApplier(store, { protectedManager: 'standalone' });
  const options = { directory, applier, clock: systemClock, logger: silentLogger, registry: new Registry() };
  running = new ManifestsDirectory({ ...options, onLoad: (load) => loads.push(load) }).run(stopping.signal);
}

test.each(Object.entries(resources))(
  'a manifest of a %s whose Organization is in the same directory is no error until its namespace is made',
  async (kind, spec) => {
    const manifest = `${head} ${kind}\nmetadata: {name: ${kind === 'WebhookEventType' ? 'order.paid' : 'shop'}, namespace: acme-hooks}\n${spec}\n`;
    writeFileSync(join(directory, 'all.yaml'), `${manifest}---\n${organization}`);
    start();
    await eventually(async () => expect(loads.map(({ waiting, errors }) => [waiting, errors])).toEqual([[1, []]]));
    await store.apply({ kind: 'Namespace', metadata: { name: 'acme-hooks' } }, { manager: 'test' });
    await eventually(async () => expect(loads.map(({ waiting }) => waiting)).toEqual([1, 0]));
    expect(loads.flatMap(({ errors }) => errors)).toEqual([]);
  },
);

test.each([
  ['that no Organization makes', 'other-hooks', organization],
  ['of an Organization elsewhere', 'acme-hooks', ''],
])('a manifest in a namespace %s is an error', async (_, namespace, beside) => {
  const manifest = `${head} Source\nmetadata: {name: shop, namespace: ${namespace}}\n${resources.Source}\n`;
  writeFileSync(join(directory, 'all.yaml'), `${manifest}---\n${beside}`);
  start();
  await eventually(async () =>
    expect(loads[0]?.errors).toMatchObject([{ file: 'Source shop', message: expect.stringContaining(namespace) }]),
  );
});

test('an Organization of another installation is an error, and is not applied', async () => {
  writeFileSync(
    join(directory, 'all.yaml'),
    `${organization}---\n${organization.replace('acme}', 'two}').replace('-hooks', '-two, installation: two')}`,
  );
  start();
  await eventually(() =>
    expect(loads[0]?.errors).toEqual([{ file: 'Organization two', message: 'spec.installation is two: only default is served here' }]),
  );
  expect(loads[0]?.objects).toHaveLength(1);
  expect((await store.list('Organization')).items.map(({ metadata }) => metadata.name)).toEqual(['acme']);
});
