import { Gauge, type Registry } from 'prom-client';
import type { KubernetesApi } from '../store/kubernetes/kubernetes-api.ts';

/** Shows how the clocks of the process and of the API server differ. Null: there is no API server. */
export function apiServerClockMetric(registry: Registry, api: Pick<KubernetesApi, 'clockSkewMs'> | null): void {
  new Gauge({
    name: 'posthorn_api_server_clock_skew_seconds',
    help: 'Clock of the process minus clock of the API server of Kubernetes, as its last response has it, to the second.',
    registers: [registry],
    collect() {
      const skewMs = api?.clockSkewMs ?? null;
      // A gauge without labels begins at 0.
      if (skewMs === null) this.remove();
      else this.set(skewMs / 1000);
    },
  });
}
