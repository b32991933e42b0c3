import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { type ChartValue, chartValues } from '../../hack/helm-values.ts';
import { chart, manifests, template } from '../support/helm.ts';

const schema = JSON.parse(readFileSync(`${chart}values.schema.json`, 'utf8'));
const defaults = parse(readFileSync(`${chart}values.yaml`, 'utf8'));
const values = chartValues(schema, defaults);

type Tree = { [key: string]: unknown };

/** What must be set for a value to matter, by the beginning of its path. */
const premises: Record<string, Tree> = {
  'delivery.autoscaling': { delivery: { autoscaling: { enabled: true } } },
  'api.autoscaling': { api: { autoscaling: { enabled: true } } },
  'ingest.autoscaling': { ingest: { autoscaling: { enabled: true } } },
  ...Object.fromEntries(
    ['controller', 'api', 'ingest', 'delivery'].map((role) => [
      `${role}.extraVolumeMounts`,
      { [role]: { extraVolumes: [{ name: 'some', configMap: { name: 'some' } }] } },
    ]),
  ),
  'api.service.loadBalancerClass': { api: { service: { type: 'LoadBalancer' } } },
  'api.service.loadBalancerSourceRanges': { api: { service: { type: 'LoadBalancer' } } },
  'api.service.externalTrafficPolicy': { api: { service: { type: 'LoadBalancer' } } },
  'ingest.service.loadBalancerClass': { ingest: { service: { type: 'LoadBalancer' } } },
  'ingest.service.loadBalancerSourceRanges': { ingest: { service: { type: 'LoadBalancer' } } },
  'ingest.service.externalTrafficPolicy': { ingest: { service: { type: 'LoadBalancer' } } },
  smtp: { smtp: { host: 'mail', from: 'a@example.com' } },
  'smtp.requireConfirmation': { smtp: { host: 'mail', from: 'a@example.com' }, api: { publicUrl: 'https://hooks.example.com' } },
  'redis.mode': { redis: { url: 'redis://a' } },
  'redis.sentinel': { redis: { url: 'redis://a', mode: 'sentinel' } },
  'redis.tls.caKey': { redis: { tls: { caSecret: 'ca' } } },
  'networkPolicies.redisPorts': { redis: { url: 'redis://a' } },
  ingress: { ingress: { enabled: true, host: 'a.example.com' } },
  httpRoute: { httpRoute: { enabled: true, parentRefs: [{ name: 'a' }] } },
  'monitoring.serviceMonitor': { monitoring: { serviceMonitor: { enabled: true } } },
  'monitoring.prometheusRule': { monitoring: { prometheusRule: { enabled: true } } },
  'monitoring.dashboard': { monitoring: { dashboard: { enabled: true } } },
  'policies.egressHosts': { policies: { egressHosts: { enabled: true } } },
  'crds.keep': { crds: { install: true } },
};

/** Another value than the default, where the schema takes not just any of its type. */
const others: Record<string, unknown> = {
  ...Object.fromEntries(
    ['controller', 'api', 'ingest', 'delivery'].flatMap((role) => [
      [`${role}.extraVolumes`, [{ name: 'more', configMap: { name: 'more' } }]],
      [`${role}.extraVolumeMounts`, [{ name: 'some', mountPath: '/more' }]],
      [`${role}.hostAliases`, [{ ip: '10.9.0.1', hostnames: ['a.example'] }]],
      [`${role}.dnsConfig`, { options: [{ name: 'ndots', value: '2' }] }],
      [`${role}.strategy`, { maxUnavailable: 1 }],
      [`${role}.service.loadBalancerSourceRanges`, ['10.9.0.0/16']],
      [`${role}.service.externalTrafficPolicy`, 'Local'],
    ]),
  ),
  'delivery.tolerations': [{ key: 'another' }],
  'ingress.hosts': [{ host: 'b.example.com', tlsSecret: 'b-tls' }],
  'image.digest': `sha256:${'a'.repeat(64)}`,
  'image.pullPolicy': 'Always',
  logLevel: 'debug',
  'organization.plan': 'free',
  'organization.allowedCidrs': ['10.9.0.0/16'],
  'organization.allowedHosts': ['hooks.another.example'],
  'egress.allowedCidrs': ['10.9.0.0/16'],
  'egress.allowedHosts': ['hooks.another.example'],
  'api.trustedProxies': ['10.9.0.0/16'],
  'api.service.type': 'NodePort',
  'api.ingest': 'Served',
  'api.publicUrl': 'https://hooks.example.com',
  'console.basePath': '/posthorn',
  'console.theme': 'dark',
  'console.views': [{ name: 'Failed', screen: 'deliveries', search: { status: 'failed' } }],
  'ingest.service.type': 'NodePort',
  'ingest.publicUrl': 'https://in.example.com',
  'delivery.attemptDetail': 'all',
  'delivery.autoscaling.mode': 'keda',
  'webhooks.retryDelaysSeconds': [1, 2],
  'warehouse.s3Endpoint': 'http://s3',
  'warehouse.gcsEndpoint': 'http://gcs',
  'warehouse.azureEndpoint': 'http://azure',
  'smtp.tls': 'implicit',
  'redis.url': 'redis://a',
  'redis.mode': 'cluster',
  'redis.memoryLimit': '4gb',
  'redis.bundled.image.pullPolicy': 'Always',
  'redis.bundled.maxMemory': '512mb',
  'redis.bundled.storage.size': '9Gi',
  'topologySpread.hostname': 'DoNotSchedule',
  'topologySpread.zone': 'Off',
  'networkPolicies.redisPorts': [6380],
  'networkPolicies.apiServerPorts': [8443],
  'policies.egressHosts.hosts': ['hooks.example.com'],
  'policies.egressHosts.organizations': { acme: ['hooks.acme.example'] },
  'monitoring.serviceMonitor.interval': '15s',
  'monitoring.prometheusRule.runbookUrl': 'https://runbooks.example.com/posthorn',
  'monitoring.dashboard.labels': { grafana_dashboard: 'yes' },
};

function another({ path, default: fallback }: ChartValue, premise: Tree): unknown {
  const name = path.join('.');
  const value = valueAt(premise, path) ?? fallback;
  if (name in others) return others[name];
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'string') return 'another';
  if (!Array.isArray(value)) return name.endsWith('resources') ? { requests: { cpu: '77m' } } : { another: 'another' };
  return isListOfObjects(path) ? [{ name: 'another' }] : ['/another'];
}

function valueAt(tree: unknown, [key, ...rest]: readonly string[]): unknown {
  if (key === undefined) return tree;
  return typeof tree === 'object' && tree !== null ? valueAt(Object.entries(tree).find(([name]) => name === key)?.[1], rest) : undefined;
}

function isListOfObjects(path: readonly string[]): boolean {
  const found = path.reduce((at, key) => at.properties[key], schema);
  return found.items.type === 'object';
}

function premiseOf(path: readonly string[]): Tree {
  for (let length = path.length; length > 0; length--) {
    const premise = premises[path.slice(0, length).join('.')];
    if (premise !== undefined) return premise;
  }
  return {};
}

function withValue(tree: Tree, [key = '', ...rest]: readonly string[], value: unknown): Tree {
  const inner = tree[key];
  const below = typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? { ...inner } : {};
  return { ...tree, [key]: rest.length === 0 ? value : withValue(below, rest, value) };
}

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'posthorn-values-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

const rendered = new Map<string, Promise<string>>();
/** Without the CRDs, which take most of the time, and with the Secrets given, which are others each time. */
function render(tree: Tree, installsCrds: boolean): Promise<string> {
  const text = JSON.stringify({ crds: { install: installsCrds }, ...tree });
  const known = rendered.get(text) ?? renderFile(text);
  rendered.set(text, known);
  return known;
}

async function renderFile(text: string): Promise<string> {
  const file = join(directory, `${rendered.size}.json`);
  writeFileSync(file, text);
  return withoutRandomness(await template('--values', file));
}

function withoutRandomness(text: string): string {
  return text
    .replace(/^( {2}[-\w.]+: )[A-Za-z0-9+/=]{60,}$/gm, '$1…')
    .replace(/^( {2}password: |.*requirepass |.*redis:\/\/:)\w+/gm, '$1…');
}

test('every value has a description, and values.yaml and the schema name the same ones', () => {
  expect(values.filter(({ description }) => description === '').map(({ path }) => path.join('.'))).toEqual([]);
  const named = (tree: unknown, path: string[]): string[] =>
    typeof tree === 'object' && tree !== null && !Array.isArray(tree) && !values.some((value) => value.path.join('.') === path.join('.'))
      ? Object.entries(tree).flatMap(([key, each]) => named(each, [...path, key]))
      : [path.join('.')];
  expect(named(defaults, []).sort()).toEqual(values.map(({ path }) => path.join('.')).sort());
});

const parsed = new Map<string, Map<string, string>>();
/** The fields of what is rendered: by kind, name and path, members of lists by their names. Most documents are in many renderings. */
function fieldsOf(text: string): Map<string, string> {
  const fields = parsed.get(text) ?? new Map(text.split(/^---$/m).flatMap((document) => [...fieldsOfDocument(document)]));
  parsed.set(text, fields);
  return fields;
}

const parsedDocuments = new Map<string, Map<string, string>>();
function fieldsOfDocument(document: string): Map<string, string> {
  const fields = parsedDocuments.get(document) ?? parseFields(document);
  parsedDocuments.set(document, fields);
  return fields;
}

function parseFields(text: string): Map<string, string> {
  const fields = new Map<string, string>();
  const visit = (at: string, node: unknown): void => {
    if (typeof node !== 'object' || node === null) fields.set(at, String(node));
    else for (const [key, each] of Object.entries(node)) visit(`${at}.${Array.isArray(node) ? nameIn(each, key) : key}`, each);
  };
  for (const object of manifests(text))
    for (const [key, each] of Object.entries(object)) visit(`${object.kind} ${object.metadata.name} ${key}`, each);
  return fields;
}

function nameIn(member: unknown, index: string): string {
  const found = typeof member === 'object' && member !== null ? Object.entries(member).find(([key]) => key === 'name')?.[1] : undefined;
  return typeof found === 'string' ? found : index;
}

/** What differs, a line for each object that is new or gone and for each field of the others. */
function differences(before: string, after: string): string[] {
  const [old, now] = [fieldsOf(before), fieldsOf(after)];
  const objectOf = (field: string): string => field.split(' ', 2).join(' ');
  const [objectsBefore, objectsNow] = [old, now].map((fields) => new Set([...fields.keys()].map(objectOf)));
  const lines = [...new Set([...old.keys(), ...now.keys()])].flatMap((field) => {
    const [from = '', to = ''] = [old.get(field), now.get(field)];
    if (from === to) return [];
    const object = objectOf(field);
    if (objectsBefore?.has(object) !== true) return [`+ ${object}`];
    if (objectsNow?.has(object) !== true) return [`- ${object}`];
    return [`${field}: ${changeOf(from, to)}`];
  });
  return [...new Set(lines)].sort();
}

/** The line of a text that differs; of checksums, that they do. */
function changeOf(from: string, to: string): string {
  if (/^[0-9a-f]{64}$/.test(to)) return 'another checksum';
  const [old, now] = [from.split('\n'), to.split('\n')];
  const at = now.findIndex((line, i) => line !== old[i]);
  const index = at === -1 ? now.length : at;
  return `${old[index]?.trim() ?? ''} → ${now[index]?.trim() ?? ''}`;
}

/** Without a cluster it does nothing; install.test.ts has what it does. */
const withoutEffect = 'checkReferences';
const effective = values.map((value) => [value.path.join('.'), value] as const).filter(([name]) => name !== withoutEffect);

test.each(effective)('%s does what it says', async (name, value) => {
  const premise = premiseOf(value.path);
  const installsCrds = name.startsWith('crds.');
  const before = await render(premise, installsCrds);
  const after = await render(withValue(premise, value.path, another(value, premise)), installsCrds);
  const found = differences(before, after);
  expect(found).not.toEqual([]);
  // Beside each value's description: what it changes, and to what.
  expect([value.description, ...found]).toMatchSnapshot();
});

test('what is rendered twice is the same but for the Secrets that are made', async () => {
  expect(await renderFile('{}')).toBe(await renderFile('{ }'));
});
