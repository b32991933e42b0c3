import { expect, test } from '@jest/globals';
import { deliveryPool } from '../../resources/delivery-pool.ts';
import { deploymentSpec } from './deployment.ts';

/** The same part in the Deployment of a pool with this template. */
function templateOf(podTemplate: Record<string, unknown>, user: number | null = 1000): unknown {
  const spec = deliveryPool.spec.parse({ podTemplate });
  const metadata = {
    name: 'eu',
    namespace: 'posthorn-system',
    uid: 'u',
    resourceVersion: '1',
    generation: 1,
    creationTimestamp: '2026-01-01T00:00:00Z',
  };
  const pool = { apiVersion: 'posthorn.dev/v1alpha1' as const, kind: 'DeliveryPool' as const, metadata, spec };
  const defaults = { image: null, imagePullSecrets: [], configMaps: [], secrets: [], mounts: [], metricsFrom: [], user };
  const egress = { ports: [], cidrs: [], hasHosts: false };
  const made = deploymentSpec(pool, { defaults, image: 'posthorn', configHash: '', opsPort: 9090, egress, replicas: 2 });
  return made['template'];
}

const labelSelector = { matchLabels: { 'posthorn.dev/delivery-pool': 'eu' } };
const rollout = { labelSelector, matchLabelKeys: ['pod-template-hash'] };
const preferring = (...terms: object[]) => ({ podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: terms } });
const apart = { weight: 100, podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', ...rollout } };
const own = { ...preferring({ weight: 1 }), nodeAffinity: {} };

test('the pods of a pool are preferably on several nodes, also where these have no zones, and those of the last template do not count', () => {
  const topologySpreadConstraints = [
    { topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway', maxSkew: 1, ...rollout },
    { topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway', maxSkew: 1, ...rollout },
  ];
  expect(templateOf({})).toMatchObject({ spec: { affinity: preferring(apart), topologySpreadConstraints } });
});

test.each([
  [1234, { runAsUser: 1234, runAsGroup: 1234, fsGroup: 1234 }],
  [null, {}],
])('the pods of a pool run as user %s, and never as root', (user, ids) => {
  const securityContext = { runAsNonRoot: true, ...ids, seccompProfile: { type: 'RuntimeDefault' } };
  expect(Object(templateOf({}, user)).spec.securityContext).toEqual(securityContext);
});

test('what else a pool prefers stays', () => {
  expect(templateOf({ affinity: own })).toMatchObject({ spec: { affinity: { ...own, ...preferring({ weight: 1 }, apart) } } });
});

test.each([
  [
    'is spread strictly over nodes',
    { topologySpreadConstraints: [{ topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'DoNotSchedule' }] },
    {},
  ],
  ['is not spread', { topologySpreadConstraints: [] }, {}],
  ['has an affinity that the API server will refuse', {}, { podAntiAffinity: 'everywhere' }],
])('a pool that %s has the affinity that it is given', (_, template, given) => {
  expect(templateOf({ ...template, affinity: given })).toMatchObject({ spec: { affinity: given } });
  expect(JSON.stringify(templateOf({ ...template, affinity: given }))).not.toContain('"weight":100');
});

test('the pods of a pool get its volumes, for reading only, its lines of /etc/hosts and its DNS settings', () => {
  const volumes = [{ name: 'authority', configMap: { name: 'authority' } }];
  const hostAliases = [{ ip: '10.0.0.9', hostnames: ['erp.example.com'] }];
  const dnsConfig = { options: [{ name: 'ndots', value: '2' }] };
  const made = templateOf({ volumes, volumeMounts: [{ name: 'authority', mountPath: '/etc/authority' }], hostAliases, dnsConfig });
  const volumeMounts = [{ name: 'authority', mountPath: '/etc/authority', readOnly: true }];
  expect(made).toMatchObject({ spec: { volumes, hostAliases, dnsConfig, containers: [{ volumeMounts }] } });
  expect(Object.keys(Object(templateOf({})).spec)).toEqual(expect.not.arrayContaining(['volumes', 'hostAliases', 'dnsConfig']));
});
