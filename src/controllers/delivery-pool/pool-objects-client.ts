import { clusterKinds, type OwnedKind, type OwnedObject } from '../../compile/delivery-pool/cluster-kinds.ts';
import { poolObjectName } from '../../compile/delivery-pool/pool-names.ts';
import { optionalKinds } from '../../compile/delivery-pool/pool-objects.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { ClusterObject } from '../../store/cluster-objects.ts';
import type { KubernetesObjects } from '../../store/kubernetes/kubernetes-objects.ts';
import { isOwned } from '../held-ids.ts';

const manager = 'posthorn-controller';
/** Sets the number of pods while it has no owner: between us, who no longer decide it, and an autoscaler that has not decided yet. */
const handOverManager = 'posthorn-handover';
const ownedKinds = Object.keys(clusterKinds) as OwnedKind[];

type Pool = PosthornObject<'DeliveryPool'>;

/** What is there under the names of a pool's objects. */
export type Found = Map<OwnedKind, ClusterObject>;

/** The objects of pools: reads, applies and deletes them, and never touches one that is not the pool's. */
export class PoolObjectsClient {
  readonly #objects: KubernetesObjects;

  constructor(objects: KubernetesObjects) {
    this.#objects = objects;
  }

  async find(pool: Pool): Promise<Found> {
    const found: Found = new Map();
    await Promise.all(
      ownedKinds.map(async (kind) => {
        const object = await this.#objects.get(clusterKinds[kind], keyOf(pool));
        if (object !== null) found.set(kind, object);
      }),
    );
    return found;
  }

  /** Makes or changes an object that is the pool's, or not there. CONFLICT: it has another owner meanwhile. */
  apply(object: OwnedObject, there: ClusterObject | undefined): Promise<ClusterObject> {
    return this.#objects.apply(clusterKinds[object.kind], { ...object }, { manager, uid: there?.metadata.uid ?? null });
  }

  /** Before the number of pods is left to an autoscaler: it must not fall to 1, as an unowned field would. */
  async handOverReplicas(pool: Pool, deployment: ClusterObject, replicas: number): Promise<void> {
    const isOurs = deployment.metadata.managedFields?.some(
      (entry) => entry.manager === manager && entry.operation === 'Apply' && JSON.stringify(entry.fieldsV1).includes('"f:replicas"'),
    );
    if (isOurs !== true) return;
    await this.#setReplicas(pool, deployment, replicas, handOverManager);
  }

  /** Takes the number of pods from its present owner. */
  stopPods(pool: Pool, deployment: ClusterObject): Promise<ClusterObject> {
    return this.#setReplicas(pool, deployment, 0, 'posthorn-drain');
  }

  /** Deletes optional objects that the pool must no longer have. */
  async deleteUnwanted(pool: Pool, found: Found, wanted: readonly OwnedObject[]): Promise<void> {
    const unwanted = optionalKinds.filter((kind) => !wanted.some((object) => object.kind === kind));
    await Promise.all(unwanted.map((kind) => this.delete(pool, found, kind)));
  }

  async delete(pool: Pool, found: Found, kind: OwnedKind): Promise<void> {
    const object = found.get(kind);
    if (object === undefined || !isOwned(pool, object)) return;
    await this.#objects.delete(clusterKinds[kind], keyOf(pool), object.metadata.uid);
  }

  async #setReplicas(pool: Pool, deployment: ClusterObject, replicas: number, who: string): Promise<ClusterObject> {
    const object = { metadata: keyOf(pool), spec: { replicas } };
    return this.#objects.apply(clusterKinds.Deployment, object, { manager: who, uid: deployment.metadata.uid });
  }
}

function keyOf(pool: Pool): { namespace: string; name: string } {
  return { namespace: pool.metadata.namespace ?? '', name: poolObjectName(pool) };
}
