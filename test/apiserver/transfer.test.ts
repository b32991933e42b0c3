import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { resourceId } from '../../src/core/ids.ts';
import type { RecordKind } from '../../src/core/records.ts';
import { isSealed } from '../../src/core/sealing.ts';
import { recordSealingContext, type SealedRecordField } from '../../src/core/sealing-contexts.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import type { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import { type FacadeWorld, startFacadeWorld } from '../facade/facade-world.ts';
import { type ControlPlane, kubernetesAssets, startControlPlane } from '../support/control-plane.ts';
import { testKeyring } from '../support/controllers.ts';
import { eventually } from '../support/eventually.ts';
import { kubernetesApi } from '../support/kubernetes-api.ts';

let controlPlane: ControlPlane;
let api: KubernetesApi;
let store: KubernetesStore;
let world: FacadeWorld;
beforeAll(async () => {
  controlPlane = await startControlPlane({ controllerManager: true, crds: true });
  api = kubernetesApi(controlPlane);
  store = new KubernetesStore({ api, clock: systemClock });
  world = await startFacadeWorld({ store });
}, 120_000);
afterAll(async () => {
  await world.stop();
  await api.close();
  await controlPlane.stop();
});

const namespace = 'acme';
const kubectl = (args: string[], input?: string): string =>
  execFileSync(join(kubernetesAssets(), 'kubectl'), ['--kubeconfig', controlPlane.kubeconfigPath, '-n', namespace, ...args], {
    encoding: 'utf8',
    ...(input !== undefined && { input }),
  });
async function yamlOf(path: string): Promise<string> {
  const answer = await world.request('GET', `/api/${path}`, { headers: { accept: 'application/yaml' } });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/yaml; charset=utf-8']);
  return answer.text;
}

/** Texts that YAML might take for something else. */
const ambiguous = [
  'yes',
  'No',
  'on',
  'true',
  '~',
  'null',
  '0123',
  '0o17',
  '0x1F',
  '1_000',
  '1e3',
  '.inf',
  '12:30:45',
  '2001-01-01',
  '=',
  '<<',
  '*a',
  '&a',
  '!a',
  '@a',
  '- a',
  'a: b',
  'a #b',
  ' a ',
  '"a"',
  "'a'",
  '%',
  '{a}',
  '',
  '|',
];

/** Published records by id, their secrets opened, without what counts changes. */
async function records(kind: RecordKind): Promise<Record<string, unknown>> {
  const org = resourceId('org_', (await store.get('Organization', { name: 'acme' })).metadata);
  const stored = await world.redis.client.hgetall(`test:{cfg}:rec:${kind}`);
  const opened = (value: unknown, id: string, field: string): unknown => {
    if (typeof value === 'string' && isSealed(value))
      return testKeyring.open(value, recordSealingContext(org, kind, id, field as SealedRecordField));
    if (Array.isArray(value)) return value.map((item) => opened(item, id, field));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, opened(member, id, name)]));
  };
  return Object.fromEntries(
    Object.entries(stored).map(([id, json]) => {
      const { generation: _, ...record } = JSON.parse(json);
      return [id, opened(record, id, '')];
    }),
  );
}

test('what is exported as manifests and applied with kubectl in an emptied namespace gives the same compiled records', async () => {
  await world.create('sources', { name: 'Shop' });
  await world.create('filters', { name: 'Large', conditions: [{ field: 'amount', operator: 'gt', value: 10 }] });
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const url = 'https://hooks.example.com/in';
  await world.create('destinations', {
    name: 'Plain',
    url,
    headers: Object.fromEntries(ambiguous.map((value, i) => [`X-${i}`, value])),
    enabled: false,
  });
  await world.create('destinations', {
    name: 'Bearer',
    url,
    authType: 'bearer',
    authConfig: { token: 'a: "token" #1' },
    signingSecret: secret,
  });
  await world.create('destinations', {
    name: 'Basic',
    url,
    authType: 'basic',
    authConfig: { username: 'me', password: 'línea' },
    throttle: { mode: 'rate', rateLimit: 3, rateUnit: 'hour' },
    retryPolicy: { maxRetries: 1 },
  });
  await world.create('destinations', {
    name: 'Files',
    type: 's3',
    config: { bucket: 'events', region: 'eu-central-1', accessKeyId: 'AKIAEXAMPLE', secretAccessKey: 'a-long-secret-key-00042' },
    fieldMapping: [{ source: '$.payload.id', target: 'id', type: 'string', default: 'no' }],
  });
  await world.store.apply(
    { kind: 'Secret', metadata: { name: 'own', namespace }, data: { key: Buffer.from('by hand').toString('base64') } },
    { manager: 'kubectl' },
  );
  const auth = { type: 'api_key', headerName: 'X-Key', keySecretRef: { name: 'own', key: 'key' } };
  await world.store.apply(
    { kind: 'Destination', metadata: { name: 'git', namespace, labels: { team: 'a' } }, spec: { type: 'http', http: { url, auth } } },
    { manager: 'kubectl' },
  );
  await world.create('routes', { name: 'One', sourceId: 'shop', destinationIds: ['plain', 'bearer'], filterId: 'large', priority: 3 });
  await world.create('routes', {
    name: 'Two',
    sourceId: 'shop',
    destinationIds: ['basic'],
    failoverDestinationIds: ['bearer'],
    filterConditions: [{ field: 'a', operator: 'in', value: [1, 'b', null, true] }],
    notifyOnFailure: true,
    notifyEmails: 'a@example.com',
  });
  await eventually(async () => expect(Object.keys(await records('destination'))).toHaveLength(5));
  const before = { destinations: await records('destination'), routes: await records('route') };
  expect(Object.keys(before.routes)).toHaveLength(2);

  const manifests = `${await yamlOf('destinations/export?includeSensitive=true')}---\n${await yamlOf('routes/export')}`;
  kubectl(['delete', 'routes.posthorn.dev,destinations.posthorn.dev,secrets', '--all']);
  await eventually(async () => {
    expect(await records('destination')).toEqual({});
    expect(await records('route')).toEqual({});
  });
  kubectl(['apply', '--server-side', '-f', '-'], manifests);
  await eventually(async () => {
    expect(await records('destination')).toEqual(before.destinations);
    expect(await records('route')).toEqual(before.routes);
  });
}, 120_000);

test('what is exported as JSON and imported into another organization is exported there as the same document', async () => {
  await world.addOrganization('beta');
  const key = await world.addKey('beta');
  const beta = async (method: string, path: string, body?: unknown) => {
    const answer = await world.request(method, `/api/${path}`, { key, body });
    expect([answer.status, answer.text]).toEqual([expect.any(Number), expect.any(String)]);
    return answer.body;
  };
  await beta('POST', 'sources', { name: 'Shop' });
  await beta('POST', 'filters', { name: 'Large', conditions: [{ field: 'a', operator: 'exists' }] });
  // biome-ignore lint/suspicious/noExplicitAny: parts of a JSON document
  const apart = ({ exportedAt, organizationSlug, ...rest }: any) => rest;
  for (const path of ['destinations/export?includeSensitive=true', 'routes/export']) {
    const document = (await world.request('GET', `/api/${path}`)).body;
    const [family = ''] = path.split('/');
    const answer = await beta('POST', `${family}/import`, { ...document, conflictStrategy: 'overwrite' });
    expect(answer.errors).toEqual([]);
    await eventually(async () => expect(apart(await beta('GET', path))).toEqual(apart(document)));
    const again = await beta('POST', `${family}/import`, { ...document, conflictStrategy: 'overwrite' });
    expect([again.errors, again.overwritten ?? again.summary.overwritten]).toEqual([[], document[family].length]);
    expect(apart(await beta('GET', path))).toEqual(apart(document));
  }
});

test('manifests without credentials name the Secrets that they need, and hold no secret', async () => {
  const text = await yamlOf('destinations/export');
  expect(text).not.toContain('by hand');
  expect(text).not.toContain('whsec_');
  expect(text).toContain('# Needs the Secret bearer-credentials with the keys token, signingSecret:');
  expect(text).toContain('# kubectl create secret generic own --from-literal=key=…');
  const documents = parseAllDocuments(text).map((document) => document.toJS());
  expect(documents.map(({ kind, metadata }) => [kind, metadata.name])).toEqual(
    ['basic', 'bearer', 'files', 'git', 'plain'].map((name) => ['Destination', name]),
  );
  expect(documents[3].metadata).toEqual({
    name: 'git',
    labels: { team: 'a' },
    annotations: { 'posthorn.dev/id': expect.stringMatching(/^dst_[a-z2-7]{26}$/) },
  });
});

test('a client that takes anything gets JSON', async () => {
  const { headers } = await world.request('GET', '/api/routes/export', { headers: { accept: '*/*' } });
  expect(headers.get('content-type')).toContain('application/json');
  expect(headers.get('vary')).toBe('Accept');
});
