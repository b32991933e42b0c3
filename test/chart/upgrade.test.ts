import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { kindPath, posthornKinds } from '../../src/resources/kinds.ts';
import { type ControlPlane, kubernetesAssets, startControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { chart, helm } from '../support/helm.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any;

const release = 'posthorn-system';
const samples = new URL('../../config/samples/', import.meta.url).pathname;
const run = promisify(execFile);
/** Version of the chart that is installed first; all but its version is that of today. */
const otherVersion = '99.1.2';
const ofInstallation = ['--set', 'api.replicas=3,ingress.enabled=true,ingress.host=a.example.com'];
let plane: ControlPlane;
let folder: string;
let otherChart: string;
/** At least one of every kind. */
let resources: string;
let before: State;
let after: State;
/** Deployment of the API, after the first upgrade. */
let deploymentThen: Any;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'posthorn-upgrade-'));
  resources = join(folder, 'resources.yaml');
  const files = readdirSync(samples).filter((name) => name.endsWith('.yaml'));
  writeFileSync(resources, files.map((name) => readFileSync(join(samples, name), 'utf8')).join('---\n'));
  await helm('package', chart, '--version', otherVersion, '--app-version', '99.3.4', '--destination', folder);
  otherChart = join(folder, `posthorn-${otherVersion}.tgz`);
  plane = await startControlPlane({ controllerManager: true });
  for (const name of [release, 'acme'])
    await plane.request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  await helmCommand('install', otherChart, ...ofInstallation);
  // The kinds are served a moment after they are made.
  await eventually(() => kubectl('apply', '--server-side', '-f', resources), 60_000);
  before = await state();
  await helmCommand('upgrade', chart, '--reset-then-reuse-values');
  after = await state();
  deploymentThen = await deploymentOfApi();
}, 180_000);
afterAll(async () => {
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

function helmCommand(command: 'install' | 'upgrade', what: string, ...args: string[]): Promise<string> {
  return helm(command, 'posthorn', what, '--namespace', release, '--kubeconfig', plane.kubeconfigPath, ...args);
}

/** What the first two have shown: each kind of object is valid by the document of the API server. To read it takes a third of an upgrade. */
function upgradeAgain(what: string, ...args: string[]): Promise<string> {
  return helmCommand('upgrade', what, '--disable-openapi-validation', ...args);
}

async function deploymentOfApi(): Promise<Any> {
  return plane.request('GET', `/apis/apps/v1/namespaces/${release}/deployments/posthorn-api`);
}

async function kubectl(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  return run(join(kubernetesAssets(), 'kubectl'), ['--kubeconfig', plane.kubeconfigPath, ...args]);
}

interface State {
  /** By kind, namespace and name: what an upgrade must leave as it is. */
  resources: Record<string, { uid: string; generation: number; spec: unknown }>;
  /** Data of the Secrets of the release by name. */
  secrets: Record<string, unknown>;
  /** uid of what holds pods and data, by kind and name: nothing of it is recreated. */
  workloads: Record<string, string>;
  /** Pod templates of StatefulSets, by name: a change restarts their pods. */
  podTemplates: Record<string, unknown>;
  crds: Record<string, string>;
}

/** The API server answers 429 for the moment that a changed kind takes. */
async function items(path: string): Promise<Any[]> {
  const list: Any = await eventually(() => plane.request('GET', path), 30_000);
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

test('resources of every kind outlast an upgrade to a chart of another version, in the same generation', () => {
  expect(new Set(Object.keys(before.resources).map((name) => name.split(' ')[0]))).toEqual(new Set(posthornKinds));
  expect(after.resources).toEqual(before.resources);
});

test('the API server takes the same manifests again after the upgrade, and nothing changes by it', async () => {
  const { stderr } = await eventually(() => kubectl('apply', '--server-side', '--validate=strict', '-f', resources));
  expect(stderr).toBe('');
  expect((await state()).resources).toEqual(before.resources);
});

test('the keys that seal secrets, the passwords, and the Redis with its volume stay: with them what is queued', () => {
  expect(Object.keys(before.secrets).length).toBeGreaterThan(0);
  expect(after.secrets).toEqual(before.secrets);
  expect(Object.keys(before.workloads).some((name) => name.startsWith('statefulsets/'))).toBe(true);
  expect(after.workloads).toEqual(before.workloads);
});

test('Redis is not restarted by an upgrade to another version', () => {
  expect(Object.keys(before.podTemplates).length).toBeGreaterThan(0);
  expect(after.podTemplates).toEqual(before.podTemplates);
});

test('the kinds are changed where they are, not recreated', () => {
  expect(Object.keys(before.crds).length).toBeGreaterThan(0);
  expect(after.crds).toEqual(before.crds);
});

test('ingest takes over from the API pods in steps: Ingress sends to it, then the API pods take no events; it runs all the time', async () => {
  const steps: unknown[] = [];
  for (const step of ['Routed', 'Served', 'Off']) {
    await upgradeAgain(chart, '--reset-then-reuse-values', '--set', `api.ingest=${step}`);
    const { spec }: Any = await plane.request('GET', `/apis/networking.k8s.io/v1/namespaces/${release}/ingresses/posthorn-api`);
    const { backend } = spec.rules[0].http.paths.find(({ path }: Any) => path === '/ingest/');
    const { env } = (await deploymentOfApi()).spec.template.spec.containers[0];
    steps.push([step, backend.service.name, env.find(({ name }: Any) => name === 'POSTHORN_API_INGEST').value]);
    expect((await state()).workloads).toEqual(before.workloads);
  }
  expect(steps).toEqual([
    ['Routed', 'posthorn-api', 'true'],
    ['Served', 'posthorn-ingest', 'true'],
    ['Off', 'posthorn-ingest', 'false'],
  ]);
});

const keepsValues = (deployment: Any, version: 'other' | 'own'): void => {
  expect(deployment.spec.replicas).toBe(3);
  expect(deployment.metadata.labels['app.kubernetes.io/version'] === '99.3.4').toBe(version === 'other');
};

test('--reuse-values and --reset-then-reuse-values keep the values of the installation, whatever the version', async () => {
  keepsValues(deploymentThen, 'own');
  for (const [flag, what, version] of [
    ['--reset-then-reuse-values', otherChart, 'other'],
    ['--reuse-values', otherChart, 'other'],
    ['--reuse-values', chart, 'own'],
  ] as const) {
    await upgradeAgain(what, flag);
    keepsValues(await deploymentOfApi(), version);
  }
});

test('an upgrade back to the other chart with its defaults leaves the resources, too', async () => {
  await upgradeAgain(otherChart, '--reset-values');
  expect((await state()).resources).toEqual(before.resources);
});
