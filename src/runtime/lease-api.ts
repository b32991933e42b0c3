import type { KubernetesApi } from '../store/kubernetes/kubernetes-api.ts';
import { electionTimes } from './elector.ts';
import type { LeaseApi } from './lease-elector.ts';

// A request that hangs must leave time for another try before the leader gives up.
const deadlineMs = electionTimes.renewDeadlineMs / 2;

const pathOf = (namespace: string): string => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;

/** Leases in a Kubernetes API server. */
export function kubernetesLeaseApi(api: KubernetesApi): LeaseApi {
  return {
    get: (namespace, name) => api.request('GET', `${pathOf(namespace)}/${name}`, { deadlineMs }),
    create: (lease) => api.request('POST', pathOf(lease.metadata.namespace), { body: lease, deadlineMs }),
    update: (lease) => api.request('PUT', `${pathOf(lease.metadata.namespace)}/${lease.metadata.name}`, { body: lease, deadlineMs }),
  };
}
