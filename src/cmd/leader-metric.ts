import { Gauge, type Registry } from 'prom-client';

/** Whether this process leads, for `/metrics` and `/readyz`. */
export function leaderMetric(registry: Registry): { readonly isLeading: boolean; set(isLeading: boolean): void } {
  const gauge = new Gauge({
    name: 'posthorn_controller_leading',
    help: 'Whether this controller is the leader (1) or on standby (0). Exactly one process reports 1.',
    registers: [registry],
  });
  let leading = false;
  gauge.set(0);
  return {
    get isLeading() {
      return leading;
    },
    set: (isLeading) => {
      leading = isLeading;
      gauge.set(isLeading ? 1 : 0);
    },
  };
}
