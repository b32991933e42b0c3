import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { helm, manifests, template } from '../support/helm.ts';
import { type HelmRelease, helmRelease } from '../support/helm-release.ts';
import type { Program } from '../support/program.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any;

const group = '/apis/posthorn.dev/v1alpha1';
/** By installation: both have the same name, in a namespace of their own. */
const namespaces: Record<string, string> = { default: 'posthorn-system', two: 'posthorn-two' };
const withPolicies = ['--set', 'policies.egressHosts.enabled=true', '--set', 'policies.organizationPlans.enabled=true'];
const ofTwo = [
  ...['--set', 'installation=two,crds.install=false,organization.namespace=two', ...withPolicies],
  ...['--set', 'policies.egressHosts.hosts={two.example}'],
];
let plane: ControlPlane;
let redis: RedisServer;
let directory: string;
let releases: Record<string, HelmRelease>;
let controllers: Record<string, Program>;

const get = (path: string): Promise<Any> => plane.request('GET', path);
const isReady = ({ status }: Any): boolean =>
  status?.conditions?.some((each: Any) => each.type === 'Ready' && each.status === 'True') === true;

beforeAll(async () => {
  [plane, redis] = await Promise.all([startControlPlane({ controllerManager: true }), startRedis()]);
  directory = mkdtempSync(join(tmpdir(), 'posthorn-two-'));
  const release = (installation: string, fullname: string): HelmRelease => {
    const files = join(directory, installation);
    mkdirSync(files);
    return helmRelease(plane, { release: 'posthorn', fullname, namespace: namespaces[installation] ?? '', directory: files });
  };
  releases = { default: release('default', 'posthorn'), two: release('two', 'posthorn-two') };
  for (const name of [...Object.values(namespaces), 'posthorn-three'])
    await plane.request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  await releases['default']?.put('install', undefined, ...withPolicies, '--set', 'policies.egressHosts.hosts={one.example}');
  await releases['two']?.put('install', undefined, ...ofTwo);
  controllers = {};
  for (const [installation, each] of Object.entries(releases))
    controllers[installation] = await each.start('controller', {
      POSTHORN_REDIS_URL: redis.url,
      POSTHORN_REDIS_KEY_PREFIX: `${installation}:`,
    });
}, 180_000);
afterAll(async () => {
  await Promise.all(Object.values(controllers ?? {}).map((each) => each.stop()));
  await Promise.all([plane?.stop(), redis?.stop()]);
  rmSync(directory, { recursive: true, force: true });
});

test.each([
  ['default', 'hooks'],
  ['two', 'hooks'],
])('Helm refuses a second release of the installation %s', async (installation, name) => {
  const where = ['--namespace', 'posthorn-three', '--kubeconfig', plane.kubeconfigPath];
  const values = ['--set', `crds.install=false,installation=${installation}`];
  await expect(helm('install', name, 'charts/posthorn', ...where, ...values)).rejects.toThrow(
    new RegExp(`ClusterRole "posthorn-installation-${installation}".*invalid ownership metadata`, 's'),
  );
});

test('the controllers of each have the rights and the policies to make their organization, admin key and workers', async () => {
  for (const [installation, namespace] of Object.entries(namespaces)) {
    const output = (): string => controllers[installation]?.output() ?? '';
    const organization = await eventually(`Organization ${installation} (${output()})`, 60_000, async () => {
      const found = await get(`${group}/organizations/${installation}`).catch(() => ({}));
      return isReady(found) ? found : undefined;
    });
    expect(organization.spec).toMatchObject({ installation, namespace: installation, plan: 'enterprise' });
    await eventually(`the admin key of ${installation}`, 60_000, async () =>
      isReady(await get(`${group}/namespaces/${installation}/apikeys/admin`).catch(() => ({}))) ? true : undefined,
    );
    await eventually(`the workers of ${installation}`, 60_000, () =>
      get(`/apis/apps/v1/namespaces/${namespace}/deployments/posthorn-delivery-default`).catch(() => undefined),
    );
    expect(output()).not.toMatch(/"level":"error"|forbidden/i);
  }
  const { metadata } = await get('/api/v1/namespaces/two');
  expect(metadata.labels).toMatchObject({ 'posthorn.dev/organization': 'two', 'posthorn.dev/installation': 'two' });
}, 400_000);

test('the policy on hosts of each checks its own organizations', async () => {
  const made = async (namespace: string, host: string): Promise<string> => {
    const metadata = { name: host.replace('.', '-') };
    const object = { apiVersion: 'posthorn.dev/v1alpha1', kind: 'Destination', metadata, spec: { http: { url: `https://${host}` } } };
    return plane.request('POST', `${group}/namespaces/${namespace}/destinations?dryRun=All`, object).then(
      () => 'made',
      (error: Error) => (error.message.includes(`the host ${host} is not among those`) ? 'refused' : error.message),
    );
  };
  await eventually(async () => {
    const outcomes = await Promise.all(
      ['default', 'two'].flatMap((namespace) => ['one.example', 'two.example'].map((host) => made(namespace, host))),
    );
    expect(outcomes).toEqual(['made', 'refused', 'refused', 'made']);
  }, 60_000);
}, 120_000);

test('the pools of each release are made in its namespace; those of another installation than default have its label', async () => {
  const made = async (namespace: string, installation?: string): Promise<string> => {
    const labels = installation === undefined ? {} : { labels: { 'posthorn.dev/installation': installation } };
    const object = { apiVersion: 'posthorn.dev/v1alpha1', kind: 'DeliveryPool', metadata: { name: 'extra', ...labels }, spec: {} };
    return plane.request('POST', `${group}/namespaces/${namespace}/deliverypools?dryRun=All`, object).then(
      () => 'made',
      (error: Error) => (error.message.includes('needs metadata.namespace') ? 'refused' : error.message),
    );
  };
  await eventually(async () => {
    expect([await made('posthorn-system'), await made('posthorn-system', 'two')]).toEqual(['made', 'refused']);
    expect([await made('posthorn-two'), await made('posthorn-two', 'two')]).toEqual(['refused', 'made']);
    expect([await made('default'), await made('default', 'two')]).toEqual(['refused', 'refused']);
  }, 60_000);
}, 120_000);

test('no object of the cluster that one release has is in the other, and those of the installation default are called as the release alone', async () => {
  const clusterWide = async (...args: string[]): Promise<string[]> =>
    manifests(await template('--set', 'policies.egressHosts.enabled=true,policies.organizationPlans.enabled=true', ...args))
      .filter(({ metadata }) => metadata.namespace === undefined)
      .map(({ kind, metadata }) => `${kind} ${metadata.name}`);
  const first = await clusterWide('--set', 'crds.install=false');
  const second = await clusterWide('--set', 'crds.install=false,installation=two');
  expect(second).toHaveLength(first.length);
  expect(first.filter((each) => second.includes(each))).toEqual([]);
  const named = first.map((each) => each.split(' ')[1] ?? '');
  expect(named.filter((name) => !name.startsWith('posthorn-') || name.endsWith('-default'))).toEqual(['posthorn-installation-default']);
  const longest = await clusterWide('--set', `installation=${'x'.repeat(30)},nameOverride=${'y'.repeat(40)}`);
  expect(longest.filter((each) => each.includes('x'.repeat(30))).length).toBeGreaterThan(5);
});

test.each(['Two', 'two.', 'x'.repeat(31), ''])('the installation %j is refused', async (installation) => {
  await expect(template('--set', `installation=${installation}`)).rejects.toThrow(/installation/);
});

test('what is uninstalled is of one installation, and with the CRDs only while no other needs them', async () => {
  const args = async (...values: string[]): Promise<string> => {
    const job = manifests(await template('--show-only', 'templates/uninstall/job.yaml', ...values)).find(({ kind }: Any) => kind === 'Job');
    const [{ args: given, env }] = (job as Any).spec.template.spec.containers;
    return [...given.slice(2), ...env.map(({ name, value }: Any) => `${name}=${value}`)].join(' ');
  };
  expect(await args()).toBe('POSTHORN_INSTALLATION=default');
  expect(await args('--set', 'crds.keep=false')).toBe('--delete-organizations --delete-crds POSTHORN_INSTALLATION=default');
  expect(await args('--set', 'crds.keep=false,crds.install=false,installation=two')).toBe(
    '--delete-organizations POSTHORN_INSTALLATION=two',
  );
});
