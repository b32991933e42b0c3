import { poolSelector } from '../../compile/delivery-pool/pool-names.ts';
import type { Clock } from '../../core/clock.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { KubernetesObjects } from '../../store/kubernetes/kubernetes-objects.ts';
import type { ConditionInputs } from '../conditions.ts';
import { isOwned } from '../held-ids.ts';
import { deploymentState, drainingConditionInputs } from './pool-conditions.ts';
import type { PoolObjectsClient } from './pool-objects-client.ts';

const pods = { apiVersion: 'v1', kind: 'Pod', plural: 'pods' };
const recheckMs = 1000;
/** Beyond the grace period of the pods: then the finalizer is removed, and the rest goes with the Deployment. */
const marginMs = 30_000;

export interface DrainStep {
  inputs: ConditionInputs;
  /** That are still there. */
  pods: number;
  /** Null: it is over. */
  requeueAfterMs: number | null;
}

/** The end of a pool: its pods finish their work before the finalizer is removed. */
export class PoolDrain {
  readonly #objects: KubernetesObjects;
  readonly #client: PoolObjectsClient;
  readonly #clock: Clock;

  constructor({ objects, client, clock }: { objects: KubernetesObjects; client: PoolObjectsClient; clock: Clock }) {
    this.#objects = objects;
    this.#client = client;
    this.#clock = clock;
  }

  /** Takes the pool one step nearer to its end. */
  async step(pool: PosthornObject<'DeliveryPool'>): Promise<DrainStep> {
    const found = await this.#client.find(pool);
    await Promise.all([this.#client.delete(pool, found, 'HorizontalPodAutoscaler'), this.#client.delete(pool, found, 'ScaledObject')]);
    const there = found.get('Deployment');
    if (there === undefined || !isOwned(pool, there)) return { inputs: drainingConditionInputs(0), pods: 0, requeueAfterMs: null };
    const isStopped = deploymentState(there).wanted === 0;
    const deployment = isStopped ? there : await this.#client.stopPods(pool, there);
    const { isCurrent, replicas } = deploymentState(deployment);
    const { items } = await this.#objects.list(pods, { namespace: pool.metadata.namespace ?? '', labelSelector: poolSelector(pool) });
    const left = Math.max(replicas, items.length);
    const isOver = (isCurrent && left === 0) || this.#clock.now() >= this.#limitMs(pool);
    return { inputs: drainingConditionInputs(left), pods: left, requeueAfterMs: isOver ? null : recheckMs };
  }

  #limitMs({ metadata, spec }: PosthornObject<'DeliveryPool'>): number {
    return Date.parse(metadata.deletionTimestamp ?? '') + spec.terminationGracePeriodSeconds * 1000 + marginMs;
  }
}
