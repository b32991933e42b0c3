import { Gauge, type Registry } from 'prom-client';
import type { Readiness } from './readiness.ts';

/** The state of `/readyz`, as a metric. */
export function readinessMetric(registry: Registry, readiness: Pick<Readiness, 'report'>): void {
  new Gauge({
    name: 'posthorn_readiness',
    help: 'Whether a check of the process passes (1) or fails (0). The process is ready while all of them pass; /readyz has the reasons.',
    labelNames: ['check'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [check, { ok }] of Object.entries(readiness.report().checks)) this.set({ check }, ok ? 1 : 0);
    },
  });
}
