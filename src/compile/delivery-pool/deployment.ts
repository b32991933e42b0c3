import { defaultPool } from '../../core/default-pool.ts';
import { isRecord } from '../../resources/field-tree.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import { poolLabels, poolObjectName, selectorLabels } from './pool-names.ts';
import type { PoolSetting } from './pool-setting.ts';

export const opsPortName = 'ops';
/** On the pods: changes when they must be replaced although the template is the same. */
const configHashAnnotation = 'posthorn.dev/config-hash';

/** Part of the grace period for the end of the process and for what the kubelet needs. */
const endSeconds = 10;
const defaultResources = { requests: { cpu: '100m', memory: '192Mi' }, limits: { memory: '768Mi' } };
const node = 'kubernetes.io/hostname';
const defaultSpread = [{ topologyKey: 'topology.kubernetes.io/zone' }, { topologyKey: node }];
const preferences = 'preferredDuringSchedulingIgnoredDuringExecution';
/** Pods of one template count: those of the last one are to go. */
const matchLabelKeys = ['pod-template-hash'];

type Pool = PosthornObject<'DeliveryPool'>;

export interface EnvironmentVariable {
  name: string;
  value?: string | undefined;
  valueFrom?: unknown;
}

/** The variables that the pool itself sets; what a user gives goes before them. */
export function poolEnvironment({ metadata, spec }: Pool): EnvironmentVariable[] {
  const { proxySecretRef, allowedCidrs, allowedHosts } = spec.egress ?? {};
  const own: EnvironmentVariable[] = [
    ...(metadata.name === defaultPool ? [] : [{ name: 'POSTHORN_DELIVERY_POOL', value: metadata.name }]),
    { name: 'POSTHORN_DRAIN_SECONDS', value: String(spec.terminationGracePeriodSeconds - endSeconds) },
    ...(spec.concurrency === undefined ? [] : [{ name: 'POSTHORN_DELIVERY_CONCURRENCY', value: String(spec.concurrency) }]),
    ...(proxySecretRef === undefined ? [] : [{ name: 'POSTHORN_EGRESS_PROXY_URL', valueFrom: { secretKeyRef: proxySecretRef } }]),
    ...(allowedCidrs === undefined ? [] : [{ name: 'POSTHORN_EGRESS_ALLOWED_CIDRS', value: allowedCidrs.join(',') }]),
    ...(allowedHosts === undefined ? [] : [{ name: 'POSTHORN_EGRESS_ALLOWED_HOSTS', value: allowedHosts.join(',') }]),
  ];
  const given = spec.podTemplate?.env ?? [];
  const names = new Set(given.map(({ name }) => name));
  return [...own.filter(({ name }) => !names.has(name)), ...given];
}

/** Objects whose keys become the environment, in the order in which later ones go before earlier ones. */
export function environmentSources(
  { spec }: Pool,
  { defaults }: Pick<PoolSetting, 'defaults'>,
): { kind: 'ConfigMap' | 'Secret'; name: string }[] {
  const own = spec.redis?.secretRef;
  return [
    ...defaults.configMaps.map((name) => ({ kind: 'ConfigMap' as const, name })),
    ...defaults.secrets.map((name) => ({ kind: 'Secret' as const, name })),
    ...(own === undefined ? [] : [{ kind: 'Secret' as const, name: own.name }]),
  ];
}

/** As config/cluster-dev had them: restricted PodSecurity, a root that cannot be written to, no token of Kubernetes. */
export function deploymentSpec(pool: Pool, setting: PoolSetting): Record<string, unknown> {
  const { spec } = pool;
  const { labels, annotations, nodeSelector, tolerations, priorityClassName, hostAliases, dnsConfig } = spec.podTemplate ?? {};
  const { defaults, replicas } = setting;
  const pullSecrets = spec.imagePullSecrets ?? defaults.imagePullSecrets.map((name) => ({ name }));
  return {
    ...(replicas !== null && { replicas }),
    revisionHistoryLimit: 3,
    selector: { matchLabels: selectorLabels(pool) },
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: 0 } },
    template: {
      metadata: {
        labels: { ...labels, ...poolLabels(pool) },
        annotations: { ...annotations, [configHashAnnotation]: setting.configHash },
      },
      spec: {
        serviceAccountName: poolObjectName(pool),
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds,
        securityContext: {
          runAsNonRoot: true,
          ...(defaults.user !== null && { runAsUser: defaults.user, runAsGroup: defaults.user, fsGroup: defaults.user }),
          seccompProfile: { type: 'RuntimeDefault' },
        },
        ...(pullSecrets.length > 0 && { imagePullSecrets: pullSecrets }),
        ...(hostAliases !== undefined && { hostAliases }),
        ...(dnsConfig !== undefined && { dnsConfig }),
        ...(nodeSelector !== undefined && { nodeSelector }),
        ...(tolerations !== undefined && { tolerations }),
        ...affinity(pool),
        ...(priorityClassName !== undefined && { priorityClassName }),
        topologySpreadConstraints: spread(pool).map((constraint) => ({
          ...constraint,
          labelSelector: { matchLabels: selectorLabels(pool) },
          matchLabelKeys,
        })),
        containers: [container(pool, setting)],
        ...volumes(pool, defaults.mounts),
      },
    },
  };
}

function container(pool: Pool, setting: PoolSetting): Record<string, unknown> {
  const { spec } = pool;
  const { defaults, image } = setting;
  const sources = environmentSources(pool, setting);
  return {
    name: 'posthorn',
    image,
    ...(spec.imagePullPolicy !== undefined && { imagePullPolicy: spec.imagePullPolicy }),
    args: ['delivery'],
    ...(sources.length > 0 && {
      envFrom: sources.map(({ kind, name }) => (kind === 'Secret' ? { secretRef: { name } } : { configMapRef: { name } })),
    }),
    env: poolEnvironment(pool),
    ports: [{ name: opsPortName, containerPort: setting.opsPort, protocol: 'TCP' }],
    livenessProbe: { httpGet: { path: '/livez', port: opsPortName }, periodSeconds: 10, failureThreshold: 3 },
    readinessProbe: { httpGet: { path: '/readyz', port: opsPortName }, periodSeconds: 2 },
    startupProbe: { httpGet: { path: '/livez', port: opsPortName }, periodSeconds: 1, failureThreshold: 60 },
    resources: spec.resources ?? defaultResources,
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
    ...volumeMounts(pool, defaults.mounts),
  };
}

type SpreadConstraint = NonNullable<NonNullable<Pool['spec']['podTemplate']>['topologySpreadConstraints']>[number];

function spread(pool: Pool): SpreadConstraint[] {
  return (pool.spec.podTemplate?.topologySpreadConstraints ?? defaultSpread).map((constraint) => ({
    maxSkew: 1,
    whenUnsatisfiable: 'ScheduleAnyway',
    ...constraint,
  }));
}

/**
 * The affinity of the pool, and a preference for several nodes if its pods are to be spread over these as far as possible: the scheduler ignores such
 * constraint on nodes that lack the label of any of them, and many clusters have no zones.
 */
function affinity(pool: Pool): { affinity?: unknown } {
  const given = pool.spec.podTemplate?.affinity;
  const apart = given?.['podAntiAffinity'] ?? {};
  const isWanted = spread(pool).some(
    ({ topologyKey, whenUnsatisfiable }) => topologyKey === node && whenUnsatisfiable === 'ScheduleAnyway',
  );
  // A value that is no affinity is kept: the API server refuses it with the reason.
  if (!isWanted || !isRecord(apart)) return given === undefined ? {} : { affinity: given };
  const podAffinityTerm = { topologyKey: node, labelSelector: { matchLabels: selectorLabels(pool) }, matchLabelKeys };
  const preferred = [apart[preferences] ?? [], { weight: 100, podAffinityTerm }].flat();
  return { affinity: { ...given, podAntiAffinity: { ...apart, [preferences]: preferred } } };
}

type Mounts = PoolSetting['defaults']['mounts'];

function volumes({ spec }: Pool, mounts: Mounts): { volumes?: unknown[] } {
  const ofAll = mounts.map(({ kind, name }, index) => ({
    name: volumeName(index),
    ...(kind === 'Secret' ? { secret: { secretName: name } } : { configMap: { name } }),
  }));
  const all = [...ofAll, ...(spec.podTemplate?.volumes ?? [])];
  return all.length === 0 ? {} : { volumes: all };
}

function volumeMounts({ spec }: Pool, mounts: Mounts): { volumeMounts?: unknown[] } {
  const ofAll = mounts.map(({ path }, index) => ({ name: volumeName(index), mountPath: path, readOnly: true }));
  const all = [...ofAll, ...(spec.podTemplate?.volumeMounts ?? []).map((mount) => ({ ...mount, readOnly: true }))];
  return all.length === 0 ? {} : { volumeMounts: all };
}

function volumeName(index: number): string {
  return `files-${index}`;
}
