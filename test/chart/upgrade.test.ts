import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { kindPath, posthornKinds } from '../../src/resources/kinds.ts';
import { type ControlPlane, kubernetesAssets, startControlPlane } from '../support/control-plane.ts';
import { chart, helm } from '../support/helm.ts';
import { passes } from '../support/passes.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any;

const release = 'posthorn-system';
const previous = new URL('previous/', import.meta.url).pathname;
const resources = join(previous, 'resources.yaml');
const run = promisify(execFile);
let plane: ControlPlane;
let before: State;
let after: State;
let afterRefusal: State;
let refused: string;

beforeAll(async () => {
  plane = await startControlPlane({ controllerManager: true });
  for (const name of [release, 'acme'])
    await plane.request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  const [packaged = 'no chart of the previous release'] = globSync(`${previous}*.tgz`);
  await helmCommand('install', packaged);
  // The kinds are served a moment after they are made.
  await passes(() => kubectl('apply', '--server-side', '-f', resources), 60_000);
  before = await state();
  refused = await upgradeTo('Off').then(
    () => 'nothing',
    ({ stderr }) => String(stderr),
  );
  afterRefusal = await state();
  await upgradeTo('Routed');
  after = await state();
}, 180_000);
afterAll(() => plane?.stop());

function helmCommand(command: 'install' | 'upgrade', what: string, ...args: string[]): Promise<string> {
  return helm(command, 'posthorn', what, '--namespace', release, '--kubeconfig', plane.kubeconfigPath, ...args);
}

function upgradeTo(apiIngest: string): Promise<string> {
  return helmCommand(
    'upgrade',
    chart,
    '--reset-then-reuse-values',
    '--set',
    `api.ingest=${apiIngest},ingress.enabled=true,ingress.host=a.example.com`,
  );
}

async function kubectl(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  return run(join(kubernetesAssets(), 'kubectl'), ['--kubeconfig', plane.kubeconfigPath, ...args]);
}

interface State {
  /** By kind, namespace and name: what an upgrade must leave as it is. */
  resources: Record<string, { uid: string; generation: number; spec: unknown }>;
  /** Data of the Secrets of the release by name. */
  secrets: Record<string, unknown>;
  /** uid of what holds pods and data, by kind and name: nothing of it is made anew. */
  workloads: Record<string, string>;
  /** Of StatefulSets, by name: a change restarts their pods. */
  podTemplates: Record<string, unknown>;
  crds: Record<string, string>;
}

/** The API server answers 429 for the moment that a changed kind takes. */
async function items(path: string): Promise<Any[]> {
  const list: Any = await passes(() => plane.request('GET', path), 30_000);
  return list.items;
}

async function state(): Promise<State> {
  const found: State = { resources: {}, secrets: {}, workloads: {}, podTemplates: {}, crds: {} };
  for (const kind of posthornKinds) {
    const { root, plural } = kindPath(kind);
    for (const { metadata, spec } of await items(`${root}/${plural}`))
      found.resources[`${kind} ${metadata.namespace ?? ''}/${metadata.name}`] = {
        uid: metadata.uid,
        generation: metadata.generation,
        spec,
      };
  }
  for (const { metadata, data, type } of await items(`/api/v1/namespaces/${release}/secrets`))
    if (!type.startsWith('helm.sh/')) found.secrets[metadata.name] = data;
  for (const plural of ['deployments', 'statefulsets'])
    for (const { metadata } of await items(`/apis/apps/v1/namespaces/${release}/${plural}`))
      found.workloads[`${plural}/${metadata.name}`] = metadata.uid;
  for (const { metadata, spec } of await items(`/apis/apps/v1/namespaces/${release}/statefulsets`))
    found.podTemplates[metadata.name] = spec.template;
  for (const { metadata } of await items('/apis/apiextensions.k8s.io/v1/customresourcedefinitions'))
    found.crds[metadata.name] = metadata.uid;
  return found;
}

test('resources of every kind outlast an upgrade from the previous chart, in the same generation', () => {
  expect(new Set(Object.keys(before.resources).map((name) => name.split(' ')[0]))).toEqual(new Set(posthornKinds));
  expect(after.resources).toEqual(before.resources);
});

test('the API server still takes what was written for the previous release, and nothing changes by it', async () => {
  const { stderr } = await passes(() => kubectl('apply', '--server-side', '--validate=strict', '-f', resources));
  expect(stderr).toBe('');
  expect((await state()).resources).toEqual(before.resources);
});

test('the keys that seal secrets, the passwords, and the Redis with its volume stay: with them what is queued', () => {
  expect(Object.keys(before.secrets).length).toBeGreaterThan(0);
  expect(after.secrets).toEqual(before.secrets);
  expect(Object.keys(before.workloads).some((name) => name.startsWith('statefulsets/'))).toBe(true);
  expect(after.workloads).toMatchObject(before.workloads);
});

test('Redis is not restarted by an upgrade to another version', () => {
  expect(Object.keys(before.podTemplates).length).toBeGreaterThan(0);
  expect(after.podTemplates).toEqual(before.podTemplates);
});

test('the kinds are changed where they are, not made anew', () => {
  expect(after.crds).toMatchObject(before.crds);
});

test('an upgrade that would take the events from the API pods before ingest runs is refused, and says what to do', async () => {
  expect(refused).toContain('Upgrade with api.ingest=Routed first');
  expect(afterRefusal).toEqual(before);
});

test('ingest takes over in steps: it runs, then Ingress sends to it, then the API pods take no events', async () => {
  const place = async (): Promise<unknown> => {
    const { spec }: Any = await plane.request('GET', `/apis/networking.k8s.io/v1/namespaces/${release}/ingresses/posthorn-api`);
    const { backend } = spec.rules[0].http.paths.find(({ path }: Any) => path === '/ingest/');
    const deployment: Any = await plane.request('GET', `/apis/apps/v1/namespaces/${release}/deployments/posthorn-api`);
    const { value } = deployment.spec.template.spec.containers[0].env.find(({ name }: Any) => name === 'POSTHORN_API_INGEST');
    return [backend.service.name, value];
  };
  expect(Object.keys(after.workloads)).toContain('deployments/posthorn-ingest');
  expect(await place()).toEqual(['posthorn-api', 'true']);
  await upgradeTo('Served');
  expect(await place()).toEqual(['posthorn-ingest', 'true']);
  await upgradeTo('Off');
  expect(await place()).toEqual(['posthorn-ingest', 'false']);
});

test('an upgrade back to the previous chart leaves them, too', async () => {
  const [packaged = ''] = globSync(`${previous}*.tgz`);
  await helmCommand('upgrade', packaged, '--reset-values');
  expect((await state()).resources).toEqual(before.resources);
});
