import type { Refusal } from '../../compile/compiled.ts';
import { compileOrganization } from '../../compile/organization.ts';
import type { Clock } from '../../core/clock.ts';
import { asksForForeignId } from '../../core/ids.ts';
import type { Logger } from '../../core/logger.ts';
import type { OrganizationRecord } from '../../core/records.ts';
import type { MessagePurger } from '../../data/messages.ts';
import { kinds, type PosthornObject } from '../../resources/kinds.ts';
import type { ReconcileResult } from '../../runtime/controller.ts';
import type { Key, ResourceStore } from '../../store/store.ts';
import type { Verdict } from '../conditions.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import type { FencedPublisher } from '../fenced-publisher.ts';
import { GoneIds } from '../gone-ids.ts';
import { notProgrammed } from '../in-force.ts';
import { holdsItsId, idOf, isLive, organizationOf } from '../references.ts';
import type { StatusWriter } from '../status-writer.ts';
import { OrganizationNamespaces } from './organization-namespace.ts';
import { OrganizationRecords } from './organization-records.ts';

export interface OrganizationReconcilerOptions {
  caches: ControllerCaches;
  store: ResourceStore;
  publisher: FencedPublisher;
  purger: MessagePurger;
  status: StatusWriter;
  clock: Clock;
  logger: Logger;
}

const finalizer = 'posthorn.dev/purge';
const manager = 'posthorn-controller';
/** How long a deleted Organization waits for a purge that fails, before it is let go; the sweep tries again. */
const purgeLimitMs = 60_000;
/** What was on its way when the records were retracted has ended by then, and a second purge takes it. */
const secondPurgeAfterMs = 3000;

/** Reconciles Organizations: namespace, record, and the purge of what Redis holds once they or their namespace are gone. */
export class OrganizationReconciler {
  readonly gone = new GoneIds('Organization');
  readonly #options: OrganizationReconcilerOptions;
  readonly #namespaces: OrganizationNamespaces;
  readonly #records: OrganizationRecords;

  constructor(options: OrganizationReconcilerOptions) {
    this.#options = options;
    this.#namespaces = new OrganizationNamespaces(options.store, options.caches.Namespace);
    this.#records = new OrganizationRecords(options);
  }

  async reconcile(key: Key, signal: AbortSignal): Promise<ReconcileResult> {
    const { caches } = this.#options;
    const object = caches.Organization.get(key);
    for (const id of this.gone.of(key)) {
      const isTaken = caches.Organization.byIndex('id', id).some(isLive);
      if (!isTaken) await this.#records.remove(id, null, signal);
      this.gone.forget(key, id);
    }
    if (object === undefined) return {};
    if (!isLive(object)) return this.#finalize(object, signal);
    signal.throwIfAborted();
    if (asksForForeignId(kinds.Organization.idPrefix, object.metadata)) {
      return this.#refuse(object, { reason: 'InvalidId', message: 'the annotation posthorn.dev/id is not the id of an Organization' });
    }
    if (!holdsItsId(caches.Organization, object)) {
      return this.#refuse(object, {
        reason: 'IdTaken',
        message: 'an older Organization has the id that the annotation posthorn.dev/id asks for',
      });
    }
    if (organizationOf(caches.Organization, object.spec.namespace)?.metadata.uid !== object.metadata.uid) {
      return this.#refuse(object, {
        reason: 'NamespaceTaken',
        message: `an older Organization has the namespace ${object.spec.namespace}`,
      });
    }
    const isHeld = object.metadata.finalizers?.includes(finalizer) === true;
    return this.#putInForce(isHeld ? object : await this.#setFinalizers(object, [finalizer]), signal);
  }

  async #putInForce(object: PosthornObject<'Organization'>, signal: AbortSignal): Promise<ReconcileResult> {
    const { publisher } = this.#options;
    const id = idOf('Organization', object);
    const record = compileOrganization(object);
    const namespace = await this.#namespaces.ensure(object);
    if (namespace.state === 'gone') {
      const hadRecords = await this.#records.remove(id, object.spec.namespace, signal);
      await this.#write(object, id, { unresolved: namespace.unresolved, published: null });
      return hadRecords ? { requeueAfterMs: secondPurgeAfterMs } : {};
    }
    if (namespace.state !== 'ready') {
      await this.#write(object, id, { unresolved: namespace.unresolved, published: await publisher.get('organization', id) });
      return {};
    }
    await publisher.publish('organization', record);
    await this.#write(object, id, { published: record }, namespace.uid);
    return {};
  }

  /** Only a namespace and records that are this organization's own go; those of an older one with the same namespace stay. */
  async #finalize(object: PosthornObject<'Organization'>, signal: AbortSignal): Promise<ReconcileResult> {
    if (object.metadata.finalizers?.includes(finalizer) !== true) return {};
    const { caches, publisher, clock, logger } = this.#options;
    const { namespace } = object.spec;
    const successor = organizationOf(caches.Organization, namespace);
    const deletedForMs = clock.now() - Date.parse(object.metadata.deletionTimestamp ?? '');
    try {
      if (successor === undefined) await this.#namespaces.release(object);
      const id = idOf('Organization', object);
      const inForce = await publisher.get('organization', id);
      // Another Organization may have this id in force; what is there is not ours then.
      if (inForce === null || inForce.namespace === namespace)
        await this.#records.remove(id, successor === undefined ? namespace : null, signal);
      if (deletedForMs < secondPurgeAfterMs) return { requeueAfterMs: secondPurgeAfterMs };
    } catch (error) {
      if (deletedForMs < purgeLimitMs) throw error;
      logger.error(
        { err: error, organization: object.metadata.name },
        'the Organization is let go although Redis still holds some of its keys',
      );
    }
    await this.#setFinalizers(object, []);
    return {};
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
    await status.write(caches.Organization, object, verdictOf(outcome), { id, namespaceUid });
  }
}

interface Outcome {
  refusal?: Refusal;
  unresolved?: Refusal;
  published: OrganizationRecord | null;
}

function verdictOf({ refusal, unresolved, published }: Outcome): Verdict {
  return {
    accepted: refusal === undefined ? { status: 'True', reason: 'Accepted', message: '' } : { status: 'False', ...refusal },
    resolvedRefs: unresolved === undefined ? { status: 'True', reason: 'ResolvedRefs', message: '' } : { status: 'False', ...unresolved },
    programmed:
      refusal === undefined && unresolved === undefined ? { status: 'True', reason: 'Programmed', message: '' } : notProgrammed(published),
    isStalled: refusal !== undefined || unresolved?.reason === 'NamespaceGone',
  };
}
