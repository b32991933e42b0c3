import { Gauge, type Registry } from 'prom-client';
import type { Finding } from '../conditions.ts';
import type { Backlog } from './backlog-scaler.ts';
import type { DeploymentState } from './pool-conditions.ts';

/** What is shown of a pool. */
export interface ShownPool {
  /** Null: there is no Deployment. */
  state: DeploymentState | null;
  /** Null: there is no DeliveryPool, or it is being deleted. */
  isAccepted: boolean | null;
  /** Null: it is not known now. */
  backlog: Backlog | null;
  /** Null: no autoscaler decides the number of pods. */
  autoscaling: Finding | null;
}

/** Metrics of DeliveryPools by the leader, also of those without a worker that could report. */
export class PoolMetrics {
  readonly #workers: Gauge<'pool' | 'state'>;
  readonly #available: Gauge<'pool'>;
  readonly #accepted: Gauge<'pool'>;
  readonly #backlog: Gauge<'pool'>;
  readonly #autoscaling: Gauge<'pool'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#workers = new Gauge({
      name: 'posthorn_pool_workers',
      help: 'Pods of each DeliveryPool by state: wanted or ready. The leader reports pools without a worker, too, and the pool `default` with 0 while it does not exist although it would serve an organization.',
      labelNames: ['pool', 'state'],
      registers,
    });
    this.#available = new Gauge({
      name: 'posthorn_pool_available',
      help: 'The condition Available of each DeliveryPool: 1 while the pool has its desired pods, otherwise 0.',
      labelNames: ['pool'],
      registers,
    });
    this.#accepted = new Gauge({
      name: 'posthorn_pool_accepted',
      help: 'The condition Accepted of each DeliveryPool: 0 while its spec is not applied in full, otherwise 1. The leader reports it.',
      labelNames: ['pool'],
      registers,
    });
    this.#backlog = new Gauge({
      name: 'posthorn_pool_backlog_messages',
      help: 'Messages that more workers of the DeliveryPool could deliver sooner, plus organizations whose cron jobs or archives wait for a worker.',
      labelNames: ['pool'],
      registers,
    });
    this.#autoscaling = new Gauge({
      name: 'posthorn_pool_autoscaling_available',
      help: 'The condition Autoscaling of each DeliveryPool that a HorizontalPodAutoscaler or a ScaledObject scales: 0 while it is False, otherwise 1.',
      labelNames: ['pool'],
      registers,
    });
  }

  show(pool: string, { state, isAccepted, backlog, autoscaling }: ShownPool): void {
    this.#workers.set({ pool, state: 'wanted' }, state?.wanted ?? 0);
    this.#workers.set({ pool, state: 'ready' }, state?.readyReplicas ?? 0);
    this.#available.set({ pool }, state?.available.status === 'True' ? 1 : 0);
    if (isAccepted === null) this.#accepted.remove({ pool });
    else this.#accepted.set({ pool }, isAccepted ? 1 : 0);
    if (backlog === null) this.#backlog.remove({ pool });
    else this.#backlog.set({ pool }, backlog.messages);
    if (autoscaling === null) this.#autoscaling.remove({ pool });
    else this.#autoscaling.set({ pool }, autoscaling.status === 'False' ? 0 : 1);
  }

  forget(pool: string): void {
    for (const state of ['wanted', 'ready']) this.#workers.remove({ pool, state });
    this.#available.remove({ pool });
    this.#accepted.remove({ pool });
    this.#backlog.remove({ pool });
    this.#autoscaling.remove({ pool });
  }
}
