import type { Refusal } from '../../compile/compiled.ts';
import { compileOrganization } from '../../compile/organization.ts';
import type { Clock } from '../../core/clock.ts';
import { defaultPool } from '../../core/default-pool.ts';
import { PosthornError } from '../../core/errors.ts';
import { idAnnotation, requestsForeignId } from '../../core/ids.ts';
import type { Logger } from '../../core/logger.ts';
import type { OrganizationRecord } from '../../core/records.ts';
import type { MessagePurger } from '../../data/shard/messages.ts';
import { kinds, type PosthornObject } from '../../resources/kinds.ts';
import type { ReconcileResult } from '../../runtime/run-controller.ts';
import type { KubernetesObjects } from '../../store/kubernetes/kubernetes-objects.ts';
import type { Key, ResourceStore } from '../../store/store.ts';
import { conditionInputs, type Finding, type Verdict } from '../conditions.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import { DeletedObjectIds } from '../deleted-object-ids.ts';
import type { EventRecorder } from '../event-recorder.ts';
import type { FencedPublisher } from '../fenced-publisher.ts';
import { hasSettledId, idOf, isEnding, isLive, isOldestOfItsId, organizationOf, purgeFinalizer } from '../held-ids.ts';
import { notProgrammed } from '../programmed-condition.ts';
import { sayingOutage } from '../redis-outage.ts';
import type { StatusWriter } from '../status-writer.ts';
import { deleteResources, foreignContents } from './namespace-contents.ts';
import { archiveReference } from './organization-archive.ts';
import { OrganizationNamespaces, protectedNamespace } from './organization-namespace.ts';
import { type Pools, poolReference } from './organization-pool.ts';
import type { OrganizationQuotas } from './organization-quota.ts';
import { OrganizationRecords, retainedMs } from './organization-records.ts';
import type { Installation, OrganizationRights } from './organization-rights.ts';

export interface OrganizationReconcilerOptions {
  caches: ControllerCaches;
  store: ResourceStore;
  /** What is in namespaces; null: resources do not live in Kubernetes. */
  objects: Pick<KubernetesObjects, 'list' | 'deleteAll'> | null;
  /** Null: resources do not live in Kubernetes, where alone there are ResourceQuotas. */
  quotas: Pick<OrganizationQuotas, 'ensure'> | null;
  /** Null: resources do not live in Kubernetes, where alone rights are needed. */
  installation: Installation | null;
  rights: Pick<OrganizationRights, 'ensure' | 'remove'> | null;
  /** Null: the installation has no DeliveryPools. */
  pools: Pools | null;
  publisher: FencedPublisher;
  purger: MessagePurger;
  status: StatusWriter;
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
}

const manager = 'posthorn-controller';
/** Field manager of the annotation with the id, which stays when finalizers change. */
export const idManager = 'posthorn-identity';
/** How long a deleted Organization waits for a failing purge before its finalizer is removed; the sweep retries. */
const purgeLimitMs = 60_000;
/** What was on its way when the records were retracted has ended by then, and a second purge takes it. */
const secondPurgeAfterMs = 3000;
const poolsLookMs = 1000;
/** Objects that an Event names. */
const namedMax = 5;
/** A shard may have been emptied, such as by the loss of a Redis Cluster node. */
const assignAgainMs = 300_000;

/** Reconciles Organizations: namespace, rights in it, ResourceQuota, record, and the purge of what Redis holds once they or their namespace are gone. */
export class OrganizationReconciler {
  readonly gone = new DeletedObjectIds('Organization');
  readonly #options: OrganizationReconcilerOptions;
  readonly #namespaces: OrganizationNamespaces;
  readonly #records: OrganizationRecords;
  /** When records of a deleted one were retracted last, by its name: long after its deletion, if there was no leader until then. */
  readonly #retractedAtMs = new Map<string, number>();

  constructor(options: OrganizationReconcilerOptions) {
    this.#options = options;
    this.#namespaces = new OrganizationNamespaces(options.store, options.caches.Namespace, options.installation?.namespace ?? null);
    this.#records = new OrganizationRecords(options);
  }

  async reconcile(key: Key, signal: AbortSignal): Promise<ReconcileResult> {
    const { caches } = this.#options;
    const object = caches.Organization.get(key);
    for (const id of this.gone.of(key)) {
      const isTaken = caches.Organization.byIndex('id', id).some(isLive);
      if (!isTaken) await this.#endGone(id, signal);
      this.gone.forget(key, id);
    }
    if (object === undefined) {
      this.#retractedAtMs.delete(key.name);
      return {};
    }
    if (!isLive(object)) return this.#finalize(object, signal);
    // No process would remove the finalizer once the controllers have ended with their namespace.
    if (isInstallationEnding(caches, this.#options.installation)) {
      if (object.metadata.finalizers?.includes(purgeFinalizer) === true) await this.#setFinalizers(object, []);
      return {};
    }
    signal.throwIfAborted();
    if (requestsForeignId(kinds.Organization.idPrefix, object.metadata)) {
      return this.#refuse(object, { reason: 'InvalidId', message: 'the annotation posthorn.dev/id is not the id of an Organization' });
    }
    const formerId = await this.#formerId(object);
    if (formerId !== null) {
      const metadata = { name: object.metadata.name, annotations: { [idAnnotation]: formerId } };
      await this.#options.store.apply({ kind: 'Organization', metadata }, { manager: idManager, force: true });
      return {};
    }
    if (!isOldestOfItsId(caches.Organization, object)) {
      return this.#refuse(object, {
        reason: 'IdTaken',
        message: 'an older Organization has the id that the annotation posthorn.dev/id requests',
      });
    }
    if (object.spec.namespace === this.#options.installation?.namespace) return this.#keepOutOfInstallation(object);
    if (caches.served.isElsewhere(object.spec.namespace)) {
      return this.#refuse(object, {
        reason: 'NamespaceTaken',
        message: `an older Organization of another installation uses the namespace ${object.spec.namespace}`,
      });
    }
    if (organizationOf(caches.Organization, object.spec.namespace)?.metadata.uid !== object.metadata.uid) {
      return this.#refuse(object, {
        reason: 'NamespaceTaken',
        message: `an older Organization uses the namespace ${object.spec.namespace}`,
      });
    }
    const isHeld = object.metadata.finalizers?.includes(purgeFinalizer) === true;
    const held = isHeld ? object : await this.#setFinalizers(object, [purgeFinalizer]);
    const { status } = this.#options;
    return sayingOutage({ status, cache: caches.Organization, object: held, id: idOf('Organization', held) }, () =>
      this.#putInForce(held, signal),
    );
  }

  /**
   * The id of the retained organization of the same name and namespace, which a new one takes up with what was kept, and which one keeps whose
   * annotation was removed; null: it has its own.
   */
  async #formerId(object: PosthornObject<'Organization'>): Promise<string | null> {
    const { Organization, retained } = this.#options.caches;
    const { name, annotations } = object.metadata;
    const lastId = annotations?.[idAnnotation] === undefined ? object.status?.id : undefined;
    const ofLastId = lastId === undefined ? undefined : retained.get(lastId);
    const { namespace } = object.spec;
    const isOwn = ofLastId?.slug === name && ofLastId.namespace === namespace;
    if (!isOwn && hasSettledId(object)) return null;
    const former = isOwn ? ofLastId : retained.find(name, namespace);
    if (former === undefined || Organization.byIndex('id', former.id).some(isLive)) return null;
    const { namespaceUid } = former.retained;
    return namespaceUid !== null && namespaceUid === (await this.#namespaces.uidOf(former.namespace)) ? former.id : null;
  }

  /** The id is unused: its object is gone, or has another id. */
  async #endGone(id: string, signal: AbortSignal): Promise<void> {
    const { caches, publisher, clock } = this.#options;
    if (caches.retained.get(id) !== undefined) return;
    const record = await publisher.get('organization', id);
    if (record !== null && record.deletionPolicy !== 'Delete') await this.#records.retain(id, clock.now());
    else await this.#records.remove(id, null, signal);
  }

  /** Retracts the record of an Organization that names the namespace of the installation. It may have been published before that was refused. */
  async #keepOutOfInstallation(object: PosthornObject<'Organization'>): Promise<ReconcileResult> {
    await this.#options.rights?.remove(object);
    await this.#options.publisher.retract('organization', idOf('Organization', object));
    await this.#write(object, undefined, { unresolved: protectedNamespace(object.spec.namespace), published: null });
    return {};
  }

  async #putInForce(object: PosthornObject<'Organization'>, signal: AbortSignal): Promise<ReconcileResult> {
    const { publisher, pools, quotas, rights } = this.#options;
    const id = idOf('Organization', object);
    const archive = archiveReference(object, this.#options.caches);
    const published = await publisher.get('organization', id);
    const pool = poolReference(object, pools?.cache, published?.deliveryPool ?? null);
    const record = compileOrganization(object, archive.destinationId, pool.pool);
    const namespace = await this.#namespaces.ensure(object);
    if (namespace.state === 'gone') {
      const hadRecords = await this.#records.remove(id, object.spec.namespace, signal);
      await this.#write(object, id, { unresolved: namespace.unresolved, published: null });
      return hadRecords ? { requeueAfterMs: secondPurgeAfterMs } : {};
    }
    if (namespace.state !== 'ready') {
      if (namespace.state === 'protected') await rights?.remove(object);
      await this.#write(object, id, { unresolved: namespace.unresolved, published });
      return {};
    }
    const right = (await rights?.ensure(object)) ?? { state: 'granted' };
    // The record names any pool but the default one for as long as that may serve it: an aborted run is repeated.
    if (pool.pool === null && published?.deliveryPool !== undefined) await pools?.assign(id, defaultPool);
    await publisher.publish('organization', record);
    this.#options.caches.retained.forget(id);
    if (pool.pool !== null) await pools?.assign(id, pool.pool);
    // The organization gets no condition for rights that do not count yet.
    if (right.state === 'pending') return { requeueAfterMs: right.requeueAfterMs };
    // The right to keep the quota is one of them.
    const quota = right.state === 'granted' ? await quotas?.ensure(object) : undefined;
    const refused = right.state === 'refused' ? right : undefined;
    // An unknown state withdraws no condition.
    if (pool.isUnknown === true && object.status?.conditions !== undefined) return { requeueAfterMs: poolsLookMs };
    await this.#write(
      object,
      id,
      { unresolved: refused?.unresolved ?? pool.unresolved ?? archive.unresolved ?? quota?.unresolved, published: record, isInForce: true },
      namespace.uid,
    );
    return sooner(
      refused?.requeueAfterMs,
      quota?.requeueAfterMs,
      pool.isUnknown === true ? poolsLookMs : pool.pool === null ? undefined : assignAgainMs,
    );
  }

  /** Only a namespace and records that are this organization's own go; those of an older one with the same namespace stay. */
  async #finalize(object: PosthornObject<'Organization'>, signal: AbortSignal): Promise<ReconcileResult> {
    if (object.metadata.finalizers?.includes(purgeFinalizer) !== true) return {};
    const { caches, publisher, clock, logger, recorder } = this.#options;
    const { namespace } = object.spec;
    const hasSuccessor = organizationOf(caches.Organization, namespace) !== undefined || caches.served.isElsewhere(namespace);
    const nowMs = clock.now();
    const deletedForMs = nowMs - Date.parse(object.metadata.deletionTimestamp ?? '');
    try {
      const isRetained = object.spec.deletionPolicy !== 'Delete';
      const isToGo = !isRetained && !hasSuccessor && (await this.#isNamespaceToGo(object));
      if (!isRetained && !hasSuccessor && !isToGo && (await this.#namespaces.isOf(object))) await deleteResources(this.#options, namespace);
      await this.#options.rights?.remove(object);
      if (!hasSuccessor) await this.#namespaces.release(object, { isToGo, keepsMark: isRetained });
      const id = idOf('Organization', object);
      const inForce = await publisher.get('organization', id);
      // Another Organization may have this id in force; what is there is not ours then.
      const isOurs = inForce === null || inForce.namespace === namespace;
      const { name } = object.metadata;
      if (isRetained && inForce !== null) {
        if (isOurs && inForce.retained === undefined) await this.#retain(object, id);
        await this.#setFinalizers(object, []);
        return {};
      }
      if (isOurs && (await this.#records.remove(id, hasSuccessor ? null : namespace, signal))) this.#retractedAtMs.set(name, clock.now());
      const retractedForMs = nowMs - (this.#retractedAtMs.get(name) ?? 0);
      if (Math.min(deletedForMs, retractedForMs) < secondPurgeAfterMs) return { requeueAfterMs: secondPurgeAfterMs };
    } catch (error) {
      if (deletedForMs < purgeLimitMs) {
        await this.#sayWhyItStays(object, error);
        throw error;
      }
      recorder.record({
        object,
        type: 'Warning',
        reason: 'PurgeAbandoned',
        message: `the Organization was released before its data was removed: ${reasonOf(error)}`,
      });
      logger.error(
        { err: error, organization: object.metadata.name },
        'the Organization was released although Redis still holds some of its keys',
      );
    }
    await this.#setFinalizers(object, []);
    return {};
  }

  async #retain(object: PosthornObject<'Organization'>, id: string): Promise<void> {
    const { clock, recorder } = this.#options;
    await this.#records.retain(id, clock.now());
    const until = new Date(clock.now() + retainedMs).toISOString().slice(0, 10);
    recorder.record({
      object,
      type: 'Normal',
      reason: 'Retained',
      message: `the namespace ${object.spec.namespace} and the resources in it stay, and the data until ${until}; an Organization of the same name and namespace takes them up`,
    });
  }

  /** Only a namespace that was made for the organization goes, and only if nothing else is in it. */
  async #isNamespaceToGo(object: PosthornObject<'Organization'>): Promise<boolean> {
    if (!(await this.#namespaces.isMadeFor(object))) return false;
    const { namespace } = object.spec;
    const foreign = await foreignContents(this.#options, namespace);
    if (foreign.length === 0) return true;
    const named = foreign.slice(0, namedMax).join(', ') + (foreign.length > namedMax ? ` and ${foreign.length - namedMax} more` : '');
    this.#options.recorder.record({
      object,
      type: 'Warning',
      reason: 'NamespaceKept',
      message: `the namespace ${namespace} is kept without the resources of the organization: it also has ${named}`,
    });
    return false;
  }

  /** In the status of an object that is being deleted. A failed write hides nothing: the error is thrown anyway. */
  async #sayWhyItStays(object: PosthornObject<'Organization'>, error: unknown): Promise<void> {
    const found: Finding = { status: 'True', reason: 'Accepted', message: '' };
    const message = `the deletion waits up to a minute for the removal of its data: ${reasonOf(error)}`;
    const programmed: Finding = { status: 'False', reason: 'PurgeFailed', message };
    const verdict: Verdict = { accepted: found, resolvedRefs: { ...found, reason: 'ResolvedRefs' }, programmed, isStalled: false };
    const { status, caches, logger } = this.#options;
    try {
      await status.write(caches.Organization, object, conditionInputs(verdict), {
        id: object.status?.id,
        namespaceUid: object.status?.namespaceUid,
      });
    } catch (failure) {
      logger.debug(
        { err: failure, organization: object.metadata.name },
        'the reason why the Organization is not deleted could not be written',
      );
    }
  }

  async #refuse(object: PosthornObject<'Organization'>, refusal: Refusal): Promise<ReconcileResult> {
    await this.#write(object, undefined, { refusal, published: null });
    return {};
  }

  async #setFinalizers({ metadata }: PosthornObject<'Organization'>, finalizers: string[]): Promise<PosthornObject<'Organization'>> {
    return this.#options.store.apply({ kind: 'Organization', metadata: { name: metadata.name, finalizers } }, { manager, force: true });
  }

  async #write(
    object: PosthornObject<'Organization'>,
    id: string | undefined,
    outcome: Outcome,
    namespaceUid = object.status?.namespaceUid,
  ): Promise<void> {
    const { status, caches } = this.#options;
    await status.write(caches.Organization, object, conditionInputs(verdictOf(outcome)), { id, namespaceUid });
  }
}

export function isInstallationEnding(caches: Pick<ControllerCaches, 'Namespace'>, installation: Installation | null): boolean {
  return installation !== null && isEnding(caches.Namespace, installation.namespace);
}

function sooner(...times: (number | undefined)[]): ReconcileResult {
  const known = times.filter((ms) => ms !== undefined);
  return known.length === 0 ? {} : { requeueAfterMs: Math.min(...known) };
}

/** For people; what is no error of a known kind is in the log. */
function reasonOf(error: unknown): string {
  return error instanceof PosthornError ? `${error.code}: ${error.message}` : 'internal error; see the log of the controller';
}

interface Outcome {
  refusal?: Refusal;
  unresolved?: Refusal | undefined;
  published: OrganizationRecord | null;
  /** What is published is of the present generation, although the destination of its archive or its ResourceQuota may be missing. */
  isInForce?: true;
}

function verdictOf({ refusal, unresolved, published, isInForce }: Outcome): Verdict {
  return {
    accepted: refusal === undefined ? { status: 'True', reason: 'Accepted', message: '' } : { status: 'False', ...refusal },
    resolvedRefs: unresolved === undefined ? { status: 'True', reason: 'ResolvedRefs', message: '' } : { status: 'False', ...unresolved },
    programmed: isInForce === true ? { status: 'True', reason: 'Programmed', message: '' } : notProgrammed(published),
    isStalled: refusal !== undefined || unresolved?.reason === 'NamespaceGone',
  };
}
