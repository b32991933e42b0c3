import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { KubeConfig } from '@kubernetes/client-node';
import { Registry } from 'prom-client';
import { apiServerClockMetric } from '../../src/cmd/api-server-clock.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { listAll } from '../../src/store/all-objects.ts';
import { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { freePort } from '../support/ports.ts';

let controlPlane: ControlPlane;
let directory: string;
beforeAll(async () => {
  controlPlane = await startControlPlane();
  directory = mkdtempSync(join(tmpdir(), 'posthorn-token-'));
}, 120_000);
afterAll(async () => {
  await controlPlane?.stop();
  rmSync(directory, { recursive: true, force: true });
});

const withTokenFile = (tokenFile: string) => (): KubeConfig => {
  const config = new KubeConfig();
  const user = { name: 'u', authProvider: { name: 'tokenFile', config: { tokenFile } } };
  config.loadFromClusterAndUser({ name: 'c', server: controlPlane.url, caFile: controlPlane.caFile, skipTLSVerify: false }, user);
  return config;
};
const unchecked = (server: string) => (): KubeConfig => {
  const config = new KubeConfig();
  config.loadFromClusterAndUser({ name: 'c', server, skipTLSVerify: true }, { name: 'u' });
  return config;
};

test('a token that was replaced in its file is read again after a 401', async () => {
  const file = join(directory, 'token');
  writeFileSync(file, 'old');
  const api = new KubernetesApi({ loadKubeConfig: withTokenFile(file), clock: systemClock });
  await expect(api.request('GET', '/api/v1/namespaces')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  writeFileSync(file, controlPlane.token);
  expect(await api.request('GET', '/api/v1/namespaces')).toMatchObject({ kind: 'NamespaceList' });
  await api.close();
});

test.each([0, 90_000, -90_000])(
  'a clock that is %i ms ahead shows as a difference to that of the API server, to the second',
  async (aheadMs) => {
    const file = join(directory, 'token');
    writeFileSync(file, controlPlane.token);
    const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
    const api = new KubernetesApi({ loadKubeConfig: withTokenFile(file), clock });
    const registry = new Registry();
    apiServerClockMetric(registry, api);
    const shown = async () => (await registry.getSingleMetric('posthorn_api_server_clock_skew_seconds')?.get())?.values ?? [];
    expect([api.clockSkewMs, await shown()]).toEqual([null, []]);
    await api.request('GET', '/api/v1/namespaces');
    expect(Math.abs((api.clockSkewMs ?? Number.NaN) - aheadMs)).toBeLessThan(3000);
    expect(await shown()).toMatchObject([{ value: (api.clockSkewMs ?? 0) / 1000 }]);
    await api.close();
  },
);

test('a server that accepts and does not answer is UNAVAILABLE at the deadline', async () => {
  const server: Server = createServer(() => {});
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const api = new KubernetesApi({ loadKubeConfig: unchecked(`http://127.0.0.1:${port}`), clock: systemClock });
  await expect(api.request('GET', '/api/v1/namespaces', { deadlineMs: 300 })).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  await api.close();
  server.close();
});

test('a server that is not there is UNAVAILABLE', async () => {
  const api = new KubernetesApi({ loadKubeConfig: unchecked(`http://127.0.0.1:${await freePort()}`), clock: systemClock });
  await expect(api.request('GET', '/api/v1/namespaces')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  await api.close();
});

test("a caller's abort comes back as its own reason", async () => {
  const api = new KubernetesApi({ loadKubeConfig: withTokenFile(join(directory, 'token')), clock: systemClock });
  const reason = new Error('enough');
  await expect(api.request('GET', '/api/v1/namespaces', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  await api.close();
});

test('a Lease is made, read and replaced with a time of six fractional digits', async () => {
  const api = new KubernetesApi({ loadKubeConfig: withTokenFile(join(directory, 'token')), clock: systemClock });
  const path = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
  const lease = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'l' },
    spec: { holderIdentity: 'me', renewTime: '2026-01-01T00:00:00.000000Z' },
  };
  const made = await api.request('POST', path, { body: lease });
  expect(made).toMatchObject({ spec: { renewTime: '2026-01-01T00:00:00.000000Z' } });
  await expect(api.request('POST', path, { body: lease })).rejects.toMatchObject({ code: 'ALREADY_EXISTS' });
  await api.request('PUT', `${path}/l`, { body: { ...(made as object), spec: { holderIdentity: 'you' } } });
  await expect(api.request('PUT', `${path}/l`, { body: { ...(made as object), spec: { holderIdentity: 'they' } } })).rejects.toMatchObject({
    code: 'CONFLICT',
  });
  await api.close();
});

test('objects of which a page would be too large are read in smaller pages, whoever has made them', async () => {
  const file = join(directory, 'token');
  writeFileSync(file, controlPlane.token);
  const api = new KubernetesApi({ loadKubeConfig: withTokenFile(file), clock: systemClock });
  const store = new KubernetesStore({ api, clock: systemClock });
  const names = Array.from({ length: 60 }, (_, i) => `large-${i}`);
  for (const name of names)
    await controlPlane.request('POST', '/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, annotations: { note: 'x'.repeat(250_000) } },
    });
  const page = await store.list('Namespace');
  expect(page.continueToken).toBeDefined();
  expect(JSON.stringify(page.items).length).toBeLessThan(8 * 1024 * 1024);
  const found = (await listAll(store, 'Namespace')).map(({ metadata }) => metadata.name);
  expect(found).toEqual(expect.arrayContaining(names));
  expect(new Set(found).size).toBe(found.length);
  // Small ones are read in large pages again.
  for (const name of names)
    await controlPlane.request('PATCH', `/api/v1/namespaces/${name}`, { metadata: { annotations: null } }, 'application/merge-patch+json');
  for (let i = 0; i < 20; i++) await store.list('Namespace');
  expect((await store.list('Namespace')).continueToken).toBeUndefined();
  await api.close();
});

test('pages of large objects do not grow with reads of a namespace that has none', async () => {
  const file = join(directory, 'token');
  writeFileSync(file, controlPlane.token);
  const api = new KubernetesApi({ loadKubeConfig: withTokenFile(file), clock: systemClock });
  const requests = jest.spyOn(api, 'request');
  const store = new KubernetesStore({ api, clock: systemClock });
  for (let i = 0; i < 40; i++)
    await controlPlane.request('POST', '/api/v1/namespaces/default/secrets', {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: `large-${i}`, annotations: { note: 'x'.repeat(250_000) } },
    });
  expect((await store.list('Secret')).continueToken).toBeDefined();
  requests.mockClear();
  for (let i = 0; i < 5; i++) expect((await store.list('Secret', { namespace: 'kube-public' })).items).toEqual([]);
  const limits = requests.mock.calls.map(([, , options]) => options?.query?.['limit']);
  expect(limits).toEqual(Array(5).fill(limits[0]));
  expect(limits[0]).toBeLessThan(40);
  await api.close();
});
