/** The kinds of others that belong to a pool. */
export const clusterKinds = {
  Deployment: { apiVersion: 'apps/v1', kind: 'Deployment', plural: 'deployments' },
  Service: { apiVersion: 'v1', kind: 'Service', plural: 'services' },
  ServiceAccount: { apiVersion: 'v1', kind: 'ServiceAccount', plural: 'serviceaccounts' },
  PodDisruptionBudget: { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', plural: 'poddisruptionbudgets' },
  NetworkPolicy: { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', plural: 'networkpolicies' },
  HorizontalPodAutoscaler: { apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler', plural: 'horizontalpodautoscalers' },
  ScaledObject: { apiVersion: 'keda.sh/v1alpha1', kind: 'ScaledObject', plural: 'scaledobjects' },
} as const;

export type OwnedKind = keyof typeof clusterKinds;

/** An object of a pool as the controller applies it. */
export interface OwnedObject {
  apiVersion: string;
  kind: OwnedKind;
  metadata: {
    name: string;
    namespace: string;
    labels: Record<string, string>;
    annotations?: Record<string, string>;
    ownerReferences: { apiVersion: string; kind: string; name: string; uid: string; controller: true }[];
  };
  spec?: Record<string, unknown>;
  automountServiceAccountToken?: boolean;
}
