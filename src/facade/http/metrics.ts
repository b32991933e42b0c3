import { Histogram, type Registry } from 'prom-client';

/** Metrics of the facade, made once per registry. */
export function facadeMetrics(registry: Registry) {
  return {
    requestSeconds: new Histogram({
      name: 'posthorn_api_request_duration_seconds',
      help: 'Duration of REST API requests by operation and HTTP status.',
      labelNames: ['operation', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      registers: [registry],
    }),
  };
}

export type FacadeMetrics = ReturnType<typeof facadeMetrics>;
