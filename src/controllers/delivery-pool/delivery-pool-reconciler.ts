import type { Refusal } from '../../compile/compiled.ts';
import type { OwnedObject } from '../../compile/delivery-pool/cluster-kinds.ts';
import type { AllowedEgress } from '../../compile/delivery-pool/network-policy.ts';
import { poolSelector } from '../../compile/delivery-pool/pool-names.ts';
import { poolObjects } from '../../compile/delivery-pool/pool-objects.ts';
import type { PoolDefaults } from '../../compile/delivery-pool/pool-setting.ts';
import type { Clock } from '../../core/clock.ts';
import { isPosthornError, type PosthornError } from '../../core/errors.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { ReconcileResult } from '../../runtime/run-controller.ts';
import type { ResourceCache } from '../../store/cache.ts';
import type { ClusterObject } from '../../store/cluster-objects.ts';
import type { KubernetesObjects } from '../../store/kubernetes/kubernetes-objects.ts';
import type { Key, ResourceStore } from '../../store/store.ts';
import type { Finding } from '../conditions.ts';
import { isLive, isOwned } from '../held-ids.ts';
import type { StatusWriter } from '../status-writer.ts';
import { type Backlog, BacklogScaler } from './backlog-scaler.ts';
import { autoscalingFinding, type DeploymentState, deploymentState, isAutoscaler, poolConditionInputs } from './pool-conditions.ts';
import { PoolDrain } from './pool-drain.ts';
import type { PoolEgress, PoolEgressSource } from './pool-egress.ts';
import { readPoolEnvironment } from './pool-environment.ts';
import type { PoolMetrics } from './pool-metrics.ts';
import { type Found, PoolObjectsClient } from './pool-objects-client.ts';

/** What a worker makes of its environment. */
export type WorkerEnvironment = { mistakes: readonly string[] } | { opsPort: number; egress: AllowedEgress; requests: PoolEgress };

export interface DeliveryPoolOptions {
  store: Pick<ResourceStore, 'apply' | 'applyStatus'>;
  objects: KubernetesObjects;
  defaults: PoolDefaults;
  /** Validates the environment and the files of the future pods, as a worker does at its start. */
  checkEnvironment(environment: Record<string, string>, files: ReadonlyMap<string, string>): WorkerEnvironment;
  /** Receives the addresses that the workers may send requests to. */
  egressSource?: Pick<PoolEgressSource, 'note'> | undefined;
  /** Inputs from organizations and this process. */
  furtherEgress(): AllowedEgress;
  /** Whether an organization is served by the pool of this name, be it there or not. */
  serves(pool: string): boolean;
  /** Reads the backlog of a pool, by its name. Null: Redis does not answer. */
  backlog(pool: string): Promise<Backlog | null>;
  poolMetrics: PoolMetrics;
  /** Whether the namespace of the pools is being deleted. */
  isNamespaceEnding(): boolean;
  clock: Clock;
}

type Pool = PosthornObject<'DeliveryPool'>;
type PoolRefusal = Refusal & { isStalled: boolean };

interface InForce {
  state: DeploymentState | null;
  refusal: PoolRefusal | null;
  /** Null: no autoscaler decides the number of pods. */
  autoscaling: Finding | null;
}

const finalizer = 'posthorn.dev/drain';
const manager = 'posthorn-controller';
/** How soon to reconcile again without a change: a growing backlog triggers nothing. */
const recheckMs = 30_000;
const scaleRecheckMs = 15_000;
const obstacleLookMs = 5000;

/** Reconciles DeliveryPools: the objects that make the workers run, their number, and the end of them. */
export class DeliveryPoolReconciler {
  readonly #options: DeliveryPoolOptions;
  readonly #cache: ResourceCache<'DeliveryPool'>;
  readonly #status: StatusWriter;
  readonly #client: PoolObjectsClient;
  readonly #scaler: BacklogScaler;
  readonly #drain: PoolDrain;

  constructor(options: DeliveryPoolOptions & { cache: ResourceCache<'DeliveryPool'>; status: StatusWriter }) {
    this.#options = options;
    this.#cache = options.cache;
    this.#status = options.status;
    this.#client = new PoolObjectsClient(options.objects);
    this.#scaler = new BacklogScaler(options.clock);
    this.#drain = new PoolDrain({ ...options, client: this.#client });
  }

  async reconcile(key: Key, signal: AbortSignal): Promise<ReconcileResult> {
    const cached = this.#cache.get(key);
    if (cached === undefined || !isLive(cached)) this.#options.egressSource?.note(key.name, null);
    if (cached === undefined) return (await this.#showMissing(key.name)) ? { requeueAfterMs: recheckMs } : {};
    if (this.#options.isNamespaceEnding()) return this.#letGo(cached);
    if (!isLive(cached)) {
      await this.#showMissing(key.name);
      return this.#end(cached);
    }
    const isHeld = cached.metadata.finalizers?.includes(finalizer) === true;
    const pool = isHeld ? cached : await this.#setFinalizers(cached, [finalizer]);
    signal.throwIfAborted();
    const backlog = await this.#options.backlog(pool.metadata.name);
    const { state, refusal, autoscaling } = await this.#putInForce(pool, backlog);
    this.#options.poolMetrics.show(pool.metadata.name, { state, isAccepted: refusal === null, backlog, autoscaling });
    await this.#status.write(this.#cache, pool, poolConditionInputs(state, refusal, autoscaling), statusFields(pool, state, backlog));
    if (refusal !== null) return { requeueAfterMs: obstacleLookMs };
    return { requeueAfterMs: pool.spec.autoscaling?.mode === 'builtin' ? scaleRecheckMs : recheckMs };
  }

  /** A missing pool that organizations wait for is measured as one without workers. False: nothing waits for it. */
  async #showMissing(name: string): Promise<boolean> {
    const { serves, poolMetrics, backlog } = this.#options;
    if (!serves(name)) {
      poolMetrics.forget(name);
      return false;
    }
    poolMetrics.show(name, { state: null, isAccepted: null, backlog: await backlog(name), autoscaling: null });
    return true;
  }

  async #putInForce(pool: Pool, backlog: Backlog | null): Promise<InForce> {
    const found = await this.#client.find(pool);
    const there = found.get('Deployment');
    const own = there !== undefined && isOwned(pool, there) ? there : undefined;
    const refused = (refusal: Refusal, isStalled = false) => ({
      state: own === undefined ? null : deploymentState(own),
      refusal: { ...refusal, isStalled },
      autoscaling: null,
    });
    const wanted = await this.#wanted(pool, own, backlog);
    if (!Array.isArray(wanted)) return refused(wanted, wanted.reason === 'NoImage');
    const foreign = foreignAmong(pool, found, wanted);
    if (foreign !== null) return refused(foreign);
    let deployment: ClusterObject | undefined;
    let autoscaling: Finding | null = null;
    try {
      const isAutoscaled = wanted.some(({ kind }) => isAutoscaler(kind));
      if (isAutoscaled && own !== undefined) await this.#client.handOverReplicas(pool, own, deploymentState(own).wanted);
      for (const object of wanted) {
        const applied = await this.#client.apply(object, found.get(object.kind));
        if (object.kind === 'Deployment') deployment = applied;
        if (isAutoscaler(object.kind)) autoscaling = autoscalingFinding(object.kind, applied);
      }
      await this.#client.deleteUnwanted(pool, found, wanted);
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal === null) throw error;
      const current = deployment ?? own;
      return { state: current === undefined ? null : deploymentState(current), refusal, autoscaling };
    }
    return { state: deployment === undefined ? null : deploymentState(deployment), refusal: null, autoscaling };
  }

  async #wanted(pool: Pool, deployment: ClusterObject | undefined, backlog: Backlog | null): Promise<OwnedObject[] | Refusal> {
    const { defaults, objects, checkEnvironment, furtherEgress, egressSource } = this.#options;
    const image = pool.spec.image ?? defaults.image;
    if (image === null) return { reason: 'NoImage', message: 'the pool has no image, and the controller has no default (POSTHORN_IMAGE)' };
    const environment = await readPoolEnvironment(pool, defaults, objects);
    if ('reason' in environment) return environment;
    const checked = checkEnvironment(environment.variables, environment.files);
    if ('mistakes' in checked)
      return { reason: 'InvalidConfiguration', message: `workers would not start with this configuration: ${checked.mistakes.join('; ')}` };
    egressSource?.note(pool.metadata.name, checked.requests);
    return poolObjects(pool, {
      defaults,
      image,
      configHash: environment.hash,
      opsPort: checked.opsPort,
      egress: joined(checked.egress, furtherEgress()),
      replicas: this.#replicas(pool, deployment, backlog),
    });
  }

  /** Null: an autoscaler decides. */
  #replicas({ metadata, spec }: Pool, deployment: ClusterObject | undefined, backlog: Backlog | null): number | null {
    const { autoscaling } = spec;
    if (autoscaling === undefined) return spec.replicas;
    if (autoscaling.mode !== 'builtin') return null;
    const { wanted: current, readyReplicas: ready } =
      deployment === undefined ? { wanted: autoscaling.min, readyReplicas: 0 } : deploymentState(deployment);
    return this.#scaler.decide(metadata.uid, { ...autoscaling, current, ready, backlog });
  }

  async #end(pool: Pool): Promise<ReconcileResult> {
    if (pool.metadata.finalizers?.includes(finalizer) !== true) return {};
    const { inputs, pods, requeueAfterMs } = await this.#drain.step(pool);
    if (requeueAfterMs === null) return this.#letGo(pool);
    await this.#status.write(this.#cache, pool, inputs, { ...statusFields(pool, null, null), replicas: pods, desiredReplicas: 0 });
    return { requeueAfterMs };
  }

  /** In a namespace that is being deleted nothing waits: Kubernetes ends workers and controllers at the same time, and no process would remain to remove the finalizer. */
  async #letGo(pool: Pool): Promise<ReconcileResult> {
    if (pool.metadata.finalizers?.includes(finalizer) === true) await this.#setFinalizers(pool, []);
    this.#scaler.forget(pool.metadata.uid);
    return {};
  }

  async #setFinalizers({ metadata: { namespace = '', name } }: Pool, finalizers: string[]): Promise<Pool> {
    return this.#options.store.apply({ kind: 'DeliveryPool', metadata: { namespace, name, finalizers } }, { manager, force: true });
  }
}

function statusFields(pool: Pool, state: DeploymentState | null, backlog: Backlog | null): Record<string, unknown> {
  return {
    replicas: state?.replicas ?? 0,
    readyReplicas: state?.readyReplicas ?? 0,
    desiredReplicas: state?.wanted ?? 0,
    selector: poolSelector(pool),
    ...(backlog !== null && { backlog: backlog.messages, oldestMessageAgeSeconds: backlog.oldestAgeSeconds }),
  };
}

/** Why the pool's objects cannot be applied: names with another owner. */
function foreignAmong(pool: Pool, found: Found, wanted: readonly OwnedObject[]): Refusal | null {
  const foreign = wanted.flatMap(({ kind }) => {
    const there = found.get(kind);
    if (there === undefined || isOwned(pool, there)) return [];
    const owner = there.metadata.ownerReferences?.find(({ controller }) => controller === true);
    return [`${kind} ${there.metadata.name}${owner === undefined ? '' : ` of ${owner.kind} ${owner.name}`}`];
  });
  if (foreign.length === 0) return null;
  return {
    reason: 'NotOwned',
    message: `objects with the names of this pool belong to another owner and are not changed: ${foreign.join(', ')}; delete them or rename the pool`,
  };
}

/** The complaint of the API server about the objects; null for a passing error. */
function refusalOf(error: unknown): PoolRefusal | null {
  if (!isPosthornError(error)) return null;
  const { code, message } = error as PosthornError;
  switch (code) {
    case 'VALIDATION_FAILED':
    case 'BAD_REQUEST':
      return { reason: 'Invalid', message: `the API server rejects an object of the pool: ${message}`, isStalled: true };
    case 'FORBIDDEN':
      return { reason: 'Forbidden', message, isStalled: false };
    case 'RESOURCE_NOT_FOUND':
      return {
        reason: 'KedaNotFound',
        message: 'spec.autoscaling.mode is keda, but the API server has no ScaledObject kind; install KEDA',
        isStalled: false,
      };
    default:
      return null;
  }
}

function joined(one: AllowedEgress, other: AllowedEgress): AllowedEgress {
  const all = <T extends number | string>(values: readonly T[]): T[] => [...new Set(values)].sort((a, b) => (a < b ? -1 : 1));
  return {
    ports: all([...one.ports, ...other.ports]),
    cidrs: all([...one.cidrs, ...other.cidrs]),
    hasHosts: one.hasHosts || other.hasHosts,
  };
}
