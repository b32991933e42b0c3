import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { hashApiKey } from '../../src/core/api-key-hash.ts';
import { type ControlPlane, kubernetesAssets, startControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { chart, helm, manifests, template } from '../support/helm.ts';
import { type HelmRelease, helmRelease } from '../support/helm-release.ts';
import { freePort } from '../support/ports.ts';
import { startProgram } from '../support/program.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any;

const namespace = 'posthorn-system';
const run = promisify(execFile);
let controlPlane: ControlPlane;
let redis: RedisServer;
let directory: string;
let release: HelmRelease;
beforeAll(async () => {
  [controlPlane, redis] = await Promise.all([startControlPlane({ controllerManager: true }), startRedis()]);
  directory = mkdtempSync(join(tmpdir(), 'posthorn-install-'));
  release = helmRelease(controlPlane, { release: 'posthorn', fullname: 'posthorn', namespace, directory });
  const labels = { 'pod-security.kubernetes.io/warn': 'restricted' };
  await controlPlane.request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } });
  await installed('install');
  // The controller manager makes it in every namespace, a moment later; no pod is admitted before.
  await eventually('the service account of the namespace', 60_000, () =>
    get(`/api/v1/namespaces/${namespace}/serviceaccounts/default`).catch(() => undefined),
  );
}, 180_000);
afterAll(async () => {
  await Promise.all([controlPlane.stop(), redis.stop()]);
  rmSync(directory, { recursive: true });
});

function installed(command: 'install' | 'upgrade', ...args: string[]): Promise<string> {
  return release.put(command, chart, ...args);
}

function get(path: string): Promise<Any> {
  return controlPlane.request('GET', path);
}

const secret = (name: string): Promise<Record<string, string>> => release.secret(name);

const makeSecret = (name: string, stringData: Record<string, string>) =>
  controlPlane.request('POST', `/api/v1/namespaces/${namespace}/secrets`, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name },
    stringData,
  });

const plain = (text = ''): string => Buffer.from(text, 'base64').toString('utf8');

test.each(['production', 'extras'])(
  'the API server takes every object of an installation with the values %s, and warns of none',
  async (name) => {
    const text = await template('--values', new URL(`values/${name}.yaml`, import.meta.url).pathname);
    const builtIn = manifests(text).filter(({ apiVersion }) => !apiVersion.startsWith('monitoring.coreos.com'));
    await grantTest();
    const file = join(directory, `${name}.json`);
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: builtIn }));
    const apply = ['apply', '--server-side', '--force-conflicts', '--dry-run=server', '--validate=strict', '-f', file];
    const { stdout, stderr } = await run(join(kubernetesAssets(), 'kubectl'), ['--kubeconfig', controlPlane.kubeconfigPath, ...apply]);
    expect(stderr).toBe('');
    expect(stdout.trim().split('\n')).toHaveLength(builtIn.length);
  },
);

test('an upgrade keeps the keys and passwords that the installation has made', async () => {
  const names = ['posthorn-encryption', 'posthorn-api-key', 'posthorn-redis', 'posthorn-redis-server'];
  const before = await Promise.all(names.map(secret));
  await installed('upgrade', '--set', 'logLevel=debug');
  expect(await Promise.all(names.map(secret))).toEqual(before);
  expect(plain(before[0]?.['POSTHORN_ENCRYPTION_KEYS'])).toMatch(/^k1:[A-Za-z0-9+/]{43}=$/);
  expect(plain(before[1]?.['api-key'])).toMatch(/^ph_[-\w]{43}$/);
});

test('values that name what the cluster does not have are refused before anything changes, and let through on demand', async () => {
  const revisions = async () => (await get(`/api/v1/namespaces/${namespace}/secrets?labelSelector=owner%3Dhelm`)).items.length;
  const before = await revisions();
  const absent = {
    'encryptionKeys.existingSecret': 'Secret absent',
    'redis.existingSecret': 'Secret absent',
    'redis.tls.caSecret': 'Secret absent',
    'smtp.existingSecret': 'Secret absent',
    'redis.bundled.storage.className': 'StorageClass absent',
    'ingest.priorityClassName': 'PriorityClass absent',
  };
  for (const [value, named] of Object.entries(absent))
    await expect(installed('upgrade', '--set', `${value}=absent`)).rejects.toThrow(`${value} names the ${named}: it does not exist`);
  await makeSecret('given', { POSTHORN_REDIS_URL: 'redis://a', 'tls.crt': 'a' });
  const reference = 'api.extraEnv[0].valueFrom.configMapKeyRef';
  for (const [values, said] of [
    ['apiKey.existingSecret=given,apiKey.key=mine', 'apiKey.existingSecret names the Secret given: it has no key mine'],
    ['redis.tls.certificateSecret=given', 'redis.tls.certificateSecret names the Secret given: it has no key tls.key'],
    [
      `${reference}.name=absent,${reference}.key=b,api.extraEnv[0].name=A`,
      'api.extraEnv, for A, names the ConfigMap absent: it does not exist',
    ],
  ])
    await expect(installed('upgrade', '--set', values ?? '')).rejects.toThrow(said);
  expect(await revisions()).toBe(before);
  for (const values of [
    `redis.existingSecret=given,api.extraEnv[0].name=A,${reference}.name=absent,${reference}.key=b,${reference}.optional=true`,
    'redis.existingSecret=absent,checkReferences=false',
  ])
    await installed('upgrade', '--dry-run=server', '--set', values);
}, 120_000);

/** What the job before an uninstallation does; its exit code and output. */
async function runUninstall(...args: string[]): Promise<[number | NodeJS.Signals, string]> {
  const environment = { KUBECONFIG: controlPlane.kubeconfigPath, POSTHORN_LEASE_NAMESPACE: namespace };
  const program = startProgram(['uninstall', '--controller', 'posthorn-controller', ...args], environment);
  return [await program.ended, program.output()];
}

/** The objects of the test of the release; all but its pod are made. */
async function grantTest(): Promise<Any[]> {
  const objects: Any[] = manifests(await template('--show-only', 'templates/tests/api.yaml'));
  const rights = objects.filter(({ kind }) => kind !== 'Pod');
  const file = join(directory, 'test.json');
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: rights }));
  const apply = ['apply', '--server-side', '--force-conflicts', '-f', file];
  await run(join(kubernetesAssets(), 'kubectl'), ['--kubeconfig', controlPlane.kubeconfigPath, ...apply]);
  return objects;
}

/** The output of the release's test about what must be Ready; its exit code and output. Here is no API for the rest of it. */
async function testRelease(required: string): Promise<[number, string]> {
  const objects = await grantTest();
  const tokenPath = `/api/v1/namespaces/${namespace}/serviceaccounts/posthorn-test/token`;
  const made: Any = await controlPlane.request('POST', tokenPath, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: {},
  });
  writeFileSync(join(directory, 'token'), made.status.token);
  const [container] = objects.find(({ kind }) => kind === 'Pod').spec.containers;
  const env = {
    KUBERNETES_URL: controlPlane.url,
    NODE_EXTRA_CA_CERTS: controlPlane.caFile,
    TOKEN_FILE: join(directory, 'token'),
    WAIT_SECONDS: '5',
    REQUIRED: required,
    POSTHORN_URL: 'http://127.0.0.1:1',
  };
  const [, ...args] = container.command;
  return run(process.execPath, [...args, ...container.args], { env }).then(
    ({ stdout }) => [0, stdout],
    (error) => [error.code, error.stdout],
  );
}

test('a controller whose manifests the API server would refuse is not ready, and says why by an Event on their ConfigMap', async () => {
  const pool = {
    apiVersion: 'posthorn.dev/v1alpha1',
    kind: 'DeliveryPool',
    metadata: { name: 'default', namespace },
    spec: { replicas: -1 },
  };
  const opsPort = await freePort();
  const configMap = `/api/v1/namespaces/${namespace}/configmaps/posthorn-bootstrap`;
  const { data } = await get(configMap);
  await controlPlane.request('PATCH', configMap, { data: { 'delivery-pool.yaml': JSON.stringify(pool) } }, 'application/merge-patch+json');
  const controller = await release.start('controller', { POSTHORN_REDIS_URL: redis.url, POSTHORN_OPS_PORT: String(opsPort) });
  const event: Any = await eventually(`the Event (${controller.output()})`, 60_000, async () => {
    const { items } = await get(`/api/v1/namespaces/${namespace}/events`);
    return items.find(({ reason }: Any) => reason === 'BootstrapFailed');
  });
  expect(event).toMatchObject({ type: 'Warning', involvedObject: { kind: 'ConfigMap', name: 'posthorn-bootstrap' } });
  expect(event.message).toContain('DeliveryPool default: spec.replicas');
  const says = async (path: string): Promise<string> => (await fetch(`http://127.0.0.1:${opsPort}/${path}`)).text();
  await eventually(async () => expect(await says('readyz')).toContain('spec.replicas'));
  expect((await fetch(`http://127.0.0.1:${opsPort}/readyz`)).status).toBe(503);
  await eventually(async () => expect(await says('metrics')).toMatch(/^posthorn_bootstrap_complaints 1$/m));
  await controller.stop();
  await controlPlane.request('PATCH', configMap, { data }, 'application/merge-patch+json');
}, 180_000);

test('a controller with the rights of the chart makes the organization default, its admin key and the workers, and uninstall releases them', async () => {
  const apiKey = plain((await secret('posthorn-api-key'))['api-key']);
  const controller = await release.start('controller', { POSTHORN_REDIS_URL: redis.url });
  const organization = '/apis/posthorn.dev/v1alpha1/organizations/default';
  const key: Any = await eventually(`the admin key to be ready (${controller.output()})`, 60_000, async () => {
    const object = await get('/apis/posthorn.dev/v1alpha1/namespaces/default/apikeys/admin').catch(() => null);
    return object?.status?.conditions?.some(({ type, status }: Any) => type === 'Ready' && status === 'True') ? object : undefined;
  });
  expect(key.spec).toMatchObject({ role: 'admin', sha256: hashApiKey(apiKey) });
  expect((await get(organization)).spec).toMatchObject({ namespace: 'default', plan: 'enterprise' });
  expect((await get(organization)).metadata.finalizers).toEqual(['posthorn.dev/purge']);
  const workers = await eventually(`the Deployment of the workers (${controller.output()})`, 60_000, () =>
    get(`/apis/apps/v1/namespaces/${namespace}/deployments/posthorn-delivery-default`).catch(() => undefined),
  );
  expect(workers.spec).toMatchObject({ replicas: 2, template: { spec: { automountServiceAccountToken: false } } });
  const { containers, volumes } = workers.spec.template.spec;
  expect(containers[0].image).toBe('posthorn/posthorn:0.2.0');
  // The URL of Redis comes as a file, which is kept up to date.
  const { name: volume } = volumes.find((each: Any) => each.secret?.secretName === 'posthorn-redis');
  expect(containers[0].volumeMounts).toContainEqual({ name: volume, mountPath: '/etc/posthorn/redis', readOnly: true });
  expect(JSON.stringify([containers[0].env, containers[0].envFrom])).not.toContain('posthorn-redis');
  const another = `ph_${'k'.repeat(43)}`;
  // As the kubelet does when the Secret has changed.
  writeFileSync(join(directory, 'api-key', 'api-key'), another);
  await eventually(`another admin key (${controller.output()})`, 60_000, async () => {
    const { spec } = await get('/apis/posthorn.dev/v1alpha1/namespaces/default/apikeys/admin');
    return spec.sha256 === hashApiKey(another);
  });
  expect(controller.output()).not.toMatch(/"level":"error"|forbidden/i);

  // There are no nodes, so the pool does not become Ready, and the test of the release must not succeed.
  const [code, output] = await testRelease(`namespaces/${namespace}/deliverypools/default,organizations/default`);
  expect([code, output]).toEqual([1, expect.stringMatching(/deliverypools\/default Ready=False MinimumReplicasUnavailable/)]);
  expect((await testRelease('organizations/default'))[1]).toMatch(/organizations\/default Ready=True Ready/);

  expect(await runUninstall()).toEqual([0, 'pools of workers deleted: 1\ncontrollers stopped; organizations that stay: 1\n']);
  // Here the controller is no pod of the Deployment that uninstall has deleted.
  await controller.stop();
  expect(await runUninstall()).toEqual([0, 'pools of workers deleted: 0\ncontrollers stopped; organizations that stay: 1\n']);
  expect((await get(organization)).metadata.finalizers).toBeUndefined();
  await expect(get(`/apis/apps/v1/namespaces/${namespace}/deployments/posthorn-controller`)).rejects.toThrow('404');
}, 300_000);

test('an uninstallation whose job does not end leaves nothing of the job behind, and the release can be rolled back', async () => {
  const where = ['--namespace', namespace, '--kubeconfig', controlPlane.kubeconfigPath];
  const job = (await template('--show-only', 'templates/uninstall/job.yaml')).split('\nkind: Job\n')[1] ?? '';
  expect(Number(/activeDeadlineSeconds: (\d+)/.exec(job)?.[1])).toBeLessThan(300);
  expect(job).toMatch(/ttlSecondsAfterFinished: \d+/);
  // Here are no nodes: its pod waits as one whose image cannot be pulled.
  await expect(helm('uninstall', 'posthorn', '--timeout', '3s', ...where)).rejects.toThrow();
  const left = async (): Promise<string[]> => {
    const paths = ['/apis/batch/v1/namespaces/N/jobs', '/api/v1/namespaces/N/pods', '/api/v1/namespaces/N/serviceaccounts'];
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    const all = [...paths, `${rbac}/namespaces/N/roles`, `${rbac}/namespaces/N/rolebindings`, `${rbac}/clusterroles`];
    const lists: Any[] = await Promise.all(all.map((path) => get(path.replace('N', namespace))));
    return lists.flatMap(({ items }) => items.map(({ metadata }: Any) => metadata.name)).filter((name) => /-uninstall/.test(name));
  };
  await eventually('what the job needed to go', 60_000, async () => ((await left()).length === 0 ? true : undefined));
  await helm('rollback', 'posthorn', ...where);
  expect((await get(`/apis/apps/v1/namespaces/${namespace}/deployments/posthorn-controller`)).spec.replicas).toBe(2);
  expect(await left()).toEqual([]);
}, 180_000);

test('an uninstalled release leaves the CRDs with their resources and the keys that seal secrets', async () => {
  await helm('uninstall', 'posthorn', '--no-hooks', '--namespace', namespace, '--kubeconfig', controlPlane.kubeconfigPath);
  expect(plain((await secret('posthorn-encryption'))['POSTHORN_ENCRYPTION_KEYS'])).toMatch(/^k1:/);
  expect((await get('/apis/posthorn.dev/v1alpha1/organizations/default')).spec.namespace).toBe('default');
  await expect(secret('posthorn-api-key')).rejects.toThrow('404');
  // What belonged to the pool goes when the garbage collector comes to it.
  await eventually(async () => expect((await get(`/apis/apps/v1/namespaces/${namespace}/deployments`)).items).toEqual([]));
});

test('an uninstalled release leaves no resource and no CRD with crds.keep=false', async () => {
  await installed('install', '--set', 'crds.keep=false');
  const controller = await release.start('controller', { POSTHORN_REDIS_URL: redis.url });
  await eventually(`the organization to be held (${controller.output()})`, 60_000, async () =>
    (await get('/apis/posthorn.dev/v1alpha1/organizations/default')).metadata.finalizers === undefined ? undefined : true,
  );
  const pool = `/apis/posthorn.dev/v1alpha1/namespaces/${namespace}/deliverypools/default`;
  await eventually('the pool', 60_000, () => get(pool).catch(() => undefined));
  const [code, output] = await runUninstall('--delete-organizations');
  await controller.stop();
  expect([code, output.split('\n').slice(0, 2)]).toEqual([0, ['pools of workers deleted: 1', 'organizations deleted: 1']]);
  await helm('uninstall', 'posthorn', '--no-hooks', '--namespace', namespace, '--kubeconfig', controlPlane.kubeconfigPath);
  await eventually('the CRDs to go', 60_000, async () => {
    const { items } = await get('/apis/apiextensions.k8s.io/v1/customresourcedefinitions');
    return items.some(({ spec }: Any) => spec.group === 'posthorn.dev') ? undefined : true;
  });
  expect(plain((await secret('posthorn-encryption'))['POSTHORN_ENCRYPTION_KEYS'])).toMatch(/^k1:/);
}, 300_000);
