import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { bootstrapComplaints } from '../../src/cmd/bootstrap-check.ts';
import { readConfig } from '../../src/cmd/config.ts';
import { networkPolicySpec } from '../../src/compile/delivery-pool/network-policy.ts';
import { poolLabels } from '../../src/compile/delivery-pool/pool-names.ts';
import { deliveryPool } from '../../src/resources/delivery-pool.ts';
import { manifests, template } from '../support/helm.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any;

const extras = new URL('values/extras.yaml', import.meta.url).pathname;
const rendered = async (...args: string[]): Promise<Any[]> => manifests(await template(...args));
const found = (objects: Any[], kind: string, name: string): Any =>
  objects.find((object) => object.kind === kind && object.metadata.name === name);
const environmentOf = (objects: Any[], role: string): Record<string, string> =>
  Object.fromEntries(
    found(objects, 'Deployment', `posthorn-${role}`).spec.template.spec.containers[0].env.map(({ name, value }: Any) => [name, value]),
  );

let objects: Any[];
beforeAll(async () => {
  objects = await rendered('--values', extras, '--set', 'monitoring.prometheusRule.enabled=true,monitoring.dashboard.enabled=true');
});

describe('pods', () => {
  test('get further volumes, lines of /etc/hosts and DNS settings beside their own', () => {
    const { spec } = found(objects, 'Deployment', 'posthorn-controller').spec.template;
    expect(spec.volumes.map(({ name }: Any) => name)).toEqual(['api-key', 'bootstrap', 'encryption', 'redis', 'authority']);
    expect(spec.containers[0].volumeMounts).toContainEqual({ name: 'authority', mountPath: '/etc/authority', readOnly: true });
    expect(spec.hostAliases).toEqual([{ ip: '10.0.0.9', hostnames: ['kubernetes.example.com'] }]);
    expect(spec.dnsConfig).toEqual({ options: [{ name: 'ndots', value: '2' }] });
    const ingest = found(objects, 'Deployment', 'posthorn-ingest').spec.template.spec;
    expect([ingest.hostAliases, ingest.dnsConfig]).toEqual([undefined, undefined]);
  });

  test('of the workers get them by the pool default', () => {
    const text = found(objects, 'ConfigMap', 'posthorn-bootstrap').data['delivery-pool.yaml'];
    const { podTemplate } = deliveryPool.spec.parse(parseAllDocuments(text)[0]?.toJS().spec);
    expect(podTemplate).toMatchObject({
      volumes: [{ name: 'authority', configMap: { name: 'authority' } }, { name: 'token' }],
      volumeMounts: [{ name: 'authority' }, { name: 'token', mountPath: '/etc/token' }],
      hostAliases: [{ ip: '10.0.0.9', hostnames: ['erp.example.com', 'crm.example.com'] }],
      dnsConfig: { nameservers: ['10.0.0.53'] },
    });
  });

  test('pods are replaced by the update strategy of the values, and by that of Kubernetes without one', async () => {
    const strategies = (of: Any[]): unknown[] =>
      ['controller', 'api', 'ingest'].map((role) => found(of, 'Deployment', `posthorn-${role}`).spec.strategy?.rollingUpdate);
    expect(strategies(objects)).toEqual([{ maxSurge: 0, maxUnavailable: 1 }, { maxUnavailable: '50%' }, undefined]);
    expect(strategies(await rendered())).toEqual([undefined, undefined, undefined]);
  });
});

test('every object has the annotations of the installation, and its own before them', () => {
  expect(objects.length).toBeGreaterThan(60);
  for (const { kind, metadata } of objects)
    expect([kind, metadata.name, metadata['annotations']]).toEqual([
      kind,
      metadata.name,
      expect.objectContaining({ 'example.com/owner': expect.any(String) }),
    ]);
  expect(found(objects, 'ServiceAccount', 'posthorn-api').metadata.annotations['example.com/owner']).toBe('api-team');
  expect(found(objects, 'ServiceAccount', 'posthorn-ingest').metadata.annotations['example.com/owner']).toBe('platform');
  expect(found(objects, 'Secret', 'posthorn-encryption').metadata.annotations['helm.sh/resource-policy']).toBe('keep');
  expect(found(objects, 'Deployment', 'posthorn-controller').metadata.annotations['reloader.example.com/auto']).toBe('true');
  const hooks = objects.filter(({ metadata }) => metadata.annotations['helm.sh/hook'] !== undefined);
  expect(hooks.length).toBeGreaterThan(8);
});

test('an Ingress has several hosts, each with its paths, and those of one TLS Secret together', async () => {
  const { spec } = found(objects, 'Ingress', 'posthorn-api');
  expect(spec.tls).toEqual([
    { hosts: ['hooks.example.com', 'hooks.example.org'], secretName: 'hooks-tls' },
    { hosts: ['in.example.com'], secretName: 'in-tls' },
  ]);
  const paths = ({ http }: Any): unknown => http.paths.map(({ path, backend }: Any) => `${path} ${backend.service.name}`);
  expect(spec.rules.map((rule: Any) => [rule.host, paths(rule)])).toEqual([
    ['hooks.example.com', ['/api/ posthorn-api', '/ingest/ posthorn-ingest']],
    ['in.example.com', ['/ingest/ posthorn-ingest']],
    ['hooks.example.org', ['/api/ posthorn-api', '/ingest/ posthorn-ingest']],
    ['hooks.internal', ['/api/ posthorn-api', '/ingest/ posthorn-ingest']],
  ]);
  const alone = await rendered('--set', 'ingress.enabled=true,ingress.hosts[0].host=a.example');
  expect(found(alone, 'Ingress', 'posthorn-api').spec).toMatchObject({ rules: [{ host: 'a.example' }] });
  expect(found(alone, 'Ingress', 'posthorn-api').spec.tls).toBeUndefined();
});

test('a Service has the class of its load balancer, the allowed clients, and the policy that keeps addresses', () => {
  expect(found(objects, 'Service', 'posthorn-ingest').spec).toMatchObject({
    type: 'LoadBalancer',
    loadBalancerClass: 'example.com/internal',
    loadBalancerSourceRanges: ['10.0.0.0/8'],
    externalTrafficPolicy: 'Local',
  });
  expect(Object.keys(found(objects, 'Service', 'posthorn-api').spec).sort()).toEqual(['ports', 'selector', 'type']);
});

describe('NetworkPolicies', () => {
  const metadata: Any = { name: 'eu', namespace: 'posthorn-system' };
  const policyOf = (of: Any[]): Any => {
    const { POSTHORN_DELIVERY_METRICS_FROM: metricsFrom } = environmentOf(of, 'controller');
    const encryption = `k1:${Buffer.alloc(32).toString('base64')}`;
    const needed = { POSTHORN_REDIS_URL: 'redis://a', POSTHORN_ENCRYPTION_KEYS: encryption };
    const { pools } = readConfig('controller', { ...needed, POSTHORN_DELIVERY_METRICS_FROM: metricsFrom });
    return networkPolicySpec({ metadata }, 9090, { ports: [6379], cidrs: [], hasHosts: false }, pools.metricsFrom);
  };

  test('let the peers of networkPolicies.metricsFrom reach the metrics of workers too, and everybody without them', async () => {
    const from = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }];
    expect(policyOf(objects).ingress).toEqual([{ from, ports: [{ port: 9090, protocol: 'TCP' }] }]);
    expect(policyOf(await rendered()).ingress).toEqual([{ ports: [{ port: 9090, protocol: 'TCP' }] }]);
  });

  test('let workers reach no pod of the namespace of the installation but by ports of servers and networks that are allowed', () => {
    expect(JSON.stringify(policyOf(objects).egress)).not.toContain('podSelector');
  });

  test('let the pods of this release and workers of a pool reach the bundled Redis, and no pod of another release', () => {
    const [{ from }] = found(objects, 'NetworkPolicy', 'posthorn-redis').spec.ingress;
    const matches = (labels: Record<string, string>): boolean =>
      from.some(
        ({ podSelector: { matchLabels, matchExpressions = [] } }: Any) =>
          Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
          matchExpressions.every(({ key, values }: Any) => values.includes(labels[key])),
      );
    for (const role of ['controller', 'api', 'ingest']) {
      const { labels } = found(objects, 'Deployment', `posthorn-${role}`).spec.template.metadata;
      expect([role, matches(labels)]).toEqual([role, true]);
      expect(matches({ ...labels, 'app.kubernetes.io/instance': 'other' })).toBe(false);
      expect(matches({ 'app.kubernetes.io/component': role })).toBe(false);
    }
    expect(matches(poolLabels({ metadata }))).toBe(true);
    expect(matches({ 'app.kubernetes.io/component': 'delivery' })).toBe(false);
  });
});

test('the bundled Redis has a ServiceAccount of its own', async () => {
  const { spec } = found(objects, 'StatefulSet', 'posthorn-redis').spec.template;
  expect(spec.serviceAccountName).toBe('posthorn-redis');
  expect(found(objects, 'ServiceAccount', 'posthorn-redis').automountServiceAccountToken).toBe(false);
});

describe('what Helm takes', () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'posthorn-bootstrap-'));
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  test.each([['defaults'], ['production'], ['gateway'], ['extras']])(
    'of the values %s is what the kinds of Posthorn take, by the judgement of the controllers',
    async (name) => {
      const values = new URL(`values/${name}.yaml`, import.meta.url).pathname;
      const all = await rendered('--values', values);
      const { data } = all.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name.endsWith('-bootstrap'));
      rmSync(directory, { recursive: true });
      directory = mkdtempSync(join(tmpdir(), 'posthorn-bootstrap-'));
      for (const [file, text] of Object.entries<string>(data)) writeFileSync(join(directory, file), text);
      expect(await bootstrapComplaints({ directory, namespace: 'posthorn-system', installation: 'default' })).toEqual([]);
    },
  );
});
