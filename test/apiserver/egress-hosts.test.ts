import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { type Manifest, manifests, template } from '../support/helm.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any;

interface Lists {
  hosts?: string[];
  organizations?: Record<string, string[]>;
  allowTeams?: boolean;
}

const release = 'posthorn-system';
const name = 'posthorn-egress-hosts';
const collections: Record<string, string> = {
  ValidatingAdmissionPolicy: '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
  ValidatingAdmissionPolicyBinding: '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings',
  ConfigMap: `/api/v1/namespaces/${release}/configmaps`,
};
const lists = { hosts: ['*.example.com'], organizations: { acme: ['hooks.acme.example'] } };
let plane: ControlPlane;

beforeAll(async () => {
  plane = await startControlPlane({ crds: true });
  for (const [namespace, labels] of [[release], ['acme', { 'posthorn.dev/organization': 'acme' }]] as const)
    await plane.request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } });
}, 120_000);
afterAll(() => plane?.stop());

/** The objects of the chart, without those of other policies. */
async function rendered(egressHosts: Lists): Promise<Manifest[]> {
  const values = `policies.egressHosts=${JSON.stringify({ enabled: true, ...egressHosts })}`;
  return manifests(await template('--set-json', values)).filter(({ metadata }) => metadata.name === name);
}

async function apply(objects: readonly Manifest[]): Promise<void> {
  for (const object of objects) {
    const path = `${collections[object.kind]}/${object.metadata.name}?fieldManager=test&force=true`;
    await plane.request('PATCH', path, object, 'application/apply-patch+yaml');
  }
}

async function remove(objects: readonly Manifest[]): Promise<void> {
  for (const { kind, metadata } of objects) await plane.request('DELETE', `${collections[kind]}/${metadata.name}`);
}

/** `taken`, or the words of the refusal. */
async function deliverTo(host: string): Promise<string> {
  const object = {
    apiVersion: 'posthorn.dev/v1alpha1',
    kind: 'Destination',
    metadata: { name: 'tried' },
    spec: { type: 'http', http: { url: `https://${host}/` } },
  };
  return plane.request('POST', '/apis/posthorn.dev/v1alpha1/namespaces/acme/destinations?dryRun=All', object).then(
    () => 'taken',
    (error: Error) => error.message,
  );
}

/** Waits until the first host is refused by the policy and the others are allowed. */
async function expectInForce(refused: string, ...allowed: string[]): Promise<void> {
  await eventually(async () => {
    expect(await deliverTo(refused)).toContain(`the host ${refused} is not among those`);
    for (const host of allowed) expect(await deliverTo(host)).toBe('taken');
  }, 60_000);
}

const expectOff = () => eventually(async () => expect(await deliverTo('evil.example')).toBe('taken'), 60_000);

test('the policy that is enabled again after it was disabled allows the listed hosts again', async () => {
  const objects = await rendered(lists);
  for (let round = 1; round <= 3; round++) {
    await apply(objects);
    await expectInForce('evil.example', 'shop.example.com', 'hooks.acme.example');
    await remove(objects);
    await expectOff();
  }
}, 240_000);

test('an upgrade from a policy with parameters in a ConfigMap is in force without the ConfigMap, also after off and on', async () => {
  const text = readFileSync(new URL('egress-hosts-with-parameters.yaml', import.meta.url), 'utf8');
  const earlier: Manifest[] = parseAllDocuments(text).map((document) => document.toJS());
  await apply(earlier);
  await expectInForce('evil.example', 'shop.example.com');
  const objects = await rendered({ hosts: ['*.example.net'] });
  await apply(objects);
  await remove(earlier.filter(({ kind }) => kind === 'ConfigMap'));
  await expectInForce('shop.example.com', 'shop.example.net');
  const stored: Any[] = await Promise.all(objects.map(({ kind }) => plane.request('GET', `${collections[kind]}/${name}`)));
  expect(stored.flatMap(({ spec }) => [spec.paramKind, spec.paramRef])).toEqual([undefined, undefined, undefined, undefined]);
  await remove(objects);
  await expectOff();
  await apply(objects);
  await expectInForce('shop.example.com', 'shop.example.net');
  await remove(objects);
  await expectOff();
}, 240_000);

test.each<[what: string, lists: Lists, refused: string, allowed: string[]]>([
  ['no hosts', {}, 'shop.example.com', []],
  ['hosts of every organization alone', { hosts: ['*.example.com'] }, 'evil.example', ['shop.example.com']],
  ['hosts of one organization alone', { organizations: { acme: ['hooks.acme.example'] } }, 'evil.example', ['hooks.acme.example']],
  ['an organization without hosts', { hosts: ['*.example.com'], organizations: { acme: [] } }, 'evil.example', ['shop.example.com']],
  [
    'organizations with hosts and without',
    { organizations: { acme: ['hooks.acme.example'], 'other-one': [] } },
    'evil.example',
    ['hooks.acme.example'],
  ],
  [
    'capitals, and characters that CEL and YAML quote',
    { hosts: ['Shop.EXAMPLE.com', 'a"b\\c\'d<&>{{x}}', '[2001:db8::1]'] },
    'evil.example',
    ['shop.example.com', '[2001:db8::1]'],
  ],
])(
  'the policy of the chart compiles with %s and decides by the list',
  async (_, egressHosts, refused, allowed) => {
    const objects = await rendered(egressHosts);
    await apply(objects);
    await expectInForce(refused, ...allowed);
    await remove(objects);
    await expectOff();
  },
  120_000,
);

test('a refusal reads as one of the cluster, not as a mistake in the manifest', async () => {
  const objects = await rendered(lists);
  await apply(objects);
  await expectInForce('evil.example');
  expect(await deliverTo('evil.example')).toMatch(
    /answered 403: .*destinations.posthorn.dev \\"tried\\" is forbidden: ValidatingAdmissionPolicy/,
  );
  await remove(objects);
}, 120_000);
