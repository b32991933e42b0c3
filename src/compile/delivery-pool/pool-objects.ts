import { apiVersion } from '../../resources/definition.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import { clusterKinds, type OwnedKind, type OwnedObject } from './cluster-kinds.ts';
import { deploymentSpec, opsPortName } from './deployment.ts';
import { networkPolicySpec } from './network-policy.ts';
import { poolLabels, poolObjectName, selectorLabels } from './pool-names.ts';
import type { PoolSetting } from './pool-setting.ts';

/**
 * The objects that a pool owns, as server-side apply takes them. The Deployment is the last one: what its pods need is
 * there by then.
 */
export function poolObjects(pool: PosthornObject<'DeliveryPool'>, setting: PoolSetting): OwnedObject[] {
  const { spec } = pool;
  const objects = [
    serviceAccount(pool),
    made(pool, 'Service', {
      type: 'ClusterIP',
      selector: selectorLabels(pool),
      ports: [{ name: opsPortName, port: setting.opsPort, targetPort: opsPortName, protocol: 'TCP' }],
    }),
    made(pool, 'PodDisruptionBudget', { maxUnavailable: 1, selector: { matchLabels: selectorLabels(pool) } }),
  ];
  if (spec.networkPolicy?.enabled !== false)
    objects.push(made(pool, 'NetworkPolicy', networkPolicySpec(pool, setting.opsPort, setting.egress, setting.defaults.metricsFrom)));
  objects.push(made(pool, 'Deployment', deploymentSpec(pool, setting)));
  if (spec.autoscaling?.mode === 'hpa') objects.push(made(pool, 'HorizontalPodAutoscaler', autoscalerSpec(pool, spec.autoscaling)));
  if (spec.autoscaling?.mode === 'keda')
    objects.push(made(pool, 'ScaledObject', scaledObjectSpec(pool, spec.autoscaling, setting.opsPort)));
  return objects;
}

/** Kinds that a pool has an object of only by its setting. */
export const optionalKinds: readonly OwnedKind[] = ['NetworkPolicy', 'HorizontalPodAutoscaler', 'ScaledObject'];

type Autoscaling = NonNullable<PosthornObject<'DeliveryPool'>['spec']['autoscaling']>;

/** The metric has a sample of each worker, all equal: the adapter is to take their maximum (docs/delivery-pools.md). */
function autoscalerSpec(pool: PosthornObject<'DeliveryPool'>, { min, max, targetBacklogPerPod }: Autoscaling): Record<string, unknown> {
  const name = poolObjectName(pool);
  return {
    scaleTargetRef: { apiVersion: clusterKinds.Deployment.apiVersion, kind: 'Deployment', name },
    minReplicas: min,
    maxReplicas: max,
    metrics: [
      {
        type: 'External',
        external: {
          metric: { name: backlogMetric, selector: { matchLabels: { service: name } } },
          target: { type: 'AverageValue', averageValue: String(targetBacklogPerPod) },
        },
      },
    ],
  };
}

const backlogMetric = 'posthorn_backlog_messages';

/** KEDA reads the metric of the workers themselves, through their Service. */
function scaledObjectSpec(
  pool: PosthornObject<'DeliveryPool'>,
  { min, max, targetBacklogPerPod }: Autoscaling,
  opsPort: number,
): Record<string, unknown> {
  const name = poolObjectName(pool);
  return {
    scaleTargetRef: { apiVersion: clusterKinds.Deployment.apiVersion, kind: 'Deployment', name },
    minReplicaCount: min,
    maxReplicaCount: max,
    triggers: [
      {
        type: 'metrics-api',
        metricType: 'AverageValue',
        metadata: {
          url: `http://${name}.${pool.metadata.namespace}.svc:${opsPort}/metrics`,
          format: 'prometheus',
          valueLocation: backlogMetric,
          targetValue: String(targetBacklogPerPod),
        },
      },
    ],
  };
}

function serviceAccount(pool: PosthornObject<'DeliveryPool'>): OwnedObject {
  const { annotations } = pool.spec.serviceAccount ?? {};
  const { metadata, ...rest } = made(pool, 'ServiceAccount');
  return { ...rest, metadata: { ...metadata, ...(annotations !== undefined && { annotations }) }, automountServiceAccountToken: false };
}

function made(pool: PosthornObject<'DeliveryPool'>, kind: OwnedKind, spec?: Record<string, unknown>): OwnedObject {
  const { name, namespace = '', uid } = pool.metadata;
  return {
    apiVersion: clusterKinds[kind].apiVersion,
    kind,
    metadata: {
      name: poolObjectName(pool),
      namespace,
      labels: poolLabels(pool),
      ownerReferences: [{ apiVersion, kind: pool.kind, name, uid, controller: true }],
    },
    ...(spec !== undefined && { spec }),
  };
}
