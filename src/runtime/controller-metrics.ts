import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export const reconcileResults = ['success', 'requeued', 'conflict', 'unavailable', 'error'] as const;
export type ReconcileOutcome = (typeof reconcileResults)[number];

/** Metrics of the controllers of one process; one instance for all of them, labelled by kind. */
export class ControllerMetrics {
  readonly #total: Counter<'kind' | 'result'>;
  readonly #duration: Histogram<'kind'>;
  readonly #depths = new Map<string, () => number>();
  readonly #circuits: Gauge<'state'>;

  constructor(registry: Registry) {
    this.#total = new Counter({
      name: 'posthorn_reconcile_total',
      help: `Reconciles by kind and result: ${reconcileResults.join(', ')}.`,
      labelNames: ['kind', 'result'],
      registers: [registry],
    });
    this.#duration = new Histogram({
      name: 'posthorn_reconcile_duration_seconds',
      help: 'Duration of one reconcile.',
      labelNames: ['kind'],
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 30],
      registers: [registry],
    });
    this.#circuits = new Gauge({
      name: 'posthorn_circuits',
      help: 'Circuits of routes to their destinations, of webhook endpoints and of channels that are not closed, by state: open or half_open. The leader reports them.',
      labelNames: ['state'],
      registers: [registry],
    });
    const depths = this.#depths;
    new Gauge({
      name: 'posthorn_workqueue_depth',
      help: 'Objects in the work queue that wait for a reconcile.',
      labelNames: ['kind'],
      registers: [registry],
      collect() {
        for (const [kind, depth] of depths) this.set({ kind }, depth());
      },
    });
  }

  /** Series of the kind begin at 0, so that rates are right from the first reconcile. */
  addKind(kind: string, depth: () => number): void {
    for (const result of reconcileResults) this.#total.inc({ kind, result }, 0);
    this.#depths.set(kind, depth);
  }

  /** How many circuits are not closed; null: unknown to this process. */
  showCircuits(counts: { open: number; half_open: number } | null): void {
    if (counts === null) this.#circuits.reset();
    else for (const state of ['open', 'half_open'] as const) this.#circuits.set({ state }, counts[state]);
  }

  observe(kind: string, result: ReconcileOutcome, durationMs: number): void {
    this.#total.inc({ kind, result });
    this.#duration.observe({ kind }, durationMs / 1000);
  }
}
