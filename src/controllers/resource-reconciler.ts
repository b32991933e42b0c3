import type { Refusal } from '../compile/compiled.ts';
import { type OrganizationFacts, organizationFacts } from '../compile/organization.ts';
import type { Clock } from '../core/clock.ts';
import { asksForForeignId } from '../core/ids.ts';
import type { RecordByKind, RecordKind } from '../core/records.ts';
import { kinds, type ObjectOf, type PosthornKind } from '../resources/kinds.ts';
import type { ReconcileResult } from '../runtime/controller.ts';
import type { ResourceCache } from '../store/cache.ts';
import type { Key } from '../store/store.ts';
import type { Finding, Verdict } from './conditions.ts';
import { type ControllerCaches, indexes } from './controller-caches.ts';
import type { FencedPublisher } from './fenced-publisher.ts';
import { GoneIds } from './gone-ids.ts';
import { notProgrammed } from './in-force.ts';
import { holdsItsId, idOf, isLive, organizationOf } from './references.ts';
import { secretNotFound } from './secret-reader.ts';
import type { StatusWriter } from './status-writer.ts';

/** What a kind's own rules say about one object. */
export interface Evaluation<R extends RecordKind> {
  /** Why the object itself cannot be put in force. */
  refusal?: Refusal;
  /** Which reference leads nowhere. */
  unresolved?: Refusal;
  /** To be published; without it, what is published stays in force. */
  record?: RecordByKind[R];
  /** Further fields of the status. */
  status?: Record<string, unknown>;
}

/** A namespaced kind: how its objects become records. */
export interface ResourceRules<K extends PosthornKind, R extends RecordKind> {
  kind: K;
  /** null: it has no record of its own but goes into those of others. */
  recordKind: R | null;
  /** `published` reads the record in force now. */
  evaluate(object: ObjectOf<K>, organization: OrganizationFacts, published: () => Promise<RecordByKind[R] | null>): Promise<Evaluation<R>>;
  /** The record with this id is no more. */
  retracted?(id: string): void;
}

export interface ResourceReconcilerOptions {
  caches: ControllerCaches;
  publisher: FencedPublisher;
  status: StatusWriter;
  clock: Clock;
}

/**
 * A Secret that the object refers to may be made just after it: the API does so, because the object owns the Secret, and so does who applies
 * both. For so long after it was made nothing is said of it.
 */
const secretGraceMs = 3000;

const taken: Refusal = { reason: 'IdTaken', message: 'an older object has the id that the annotation posthorn.dev/id asks for' };

const invalidId: Refusal = { reason: 'InvalidId', message: 'the annotation posthorn.dev/id is not an id of this kind' };

/** Reconciles the objects of one namespaced kind: evaluate, publish, status; retract what is gone. */
export class ResourceReconciler<K extends PosthornKind, R extends RecordKind> {
  readonly gone: GoneIds<K>;
  readonly #rules: ResourceRules<K, R>;
  readonly #cache: ResourceCache<K>;
  readonly #caches: ControllerCaches;
  readonly #publisher: FencedPublisher;
  readonly #status: StatusWriter;
  readonly #clock: Clock;

  constructor(rules: ResourceRules<K, R>, cache: ResourceCache<K>, options: ResourceReconcilerOptions) {
    this.gone = new GoneIds(rules.kind);
    this.#rules = rules;
    this.#cache = cache;
    this.#caches = options.caches;
    this.#publisher = options.publisher;
    this.#status = options.status;
    this.#clock = options.clock;
  }

  async reconcile(key: Key, signal: AbortSignal): Promise<ReconcileResult> {
    for (const id of this.gone.of(key)) {
      await this.#retract(id);
      this.gone.forget(key, id);
    }
    const object = this.#cache.get(key);
    if (object === undefined) return {};
    const id = idOf(this.#rules.kind, object);
    if (!isLive(object)) {
      await this.#retract(id);
      return {};
    }
    const { verdict, fields } = await this.#putInForce(object, id);
    signal.throwIfAborted();
    const graceMs = verdict.resolvedRefs.reason === secretNotFound ? this.#graceMs(object) : 0;
    if (graceMs > 0) return { requeueAfterMs: graceMs };
    await this.#status.write(this.#cache, object, verdict, { id, ...fields });
    return {};
  }

  /** How much longer the object is new; 0 once its status says something, and when the clocks do not fit together. */
  #graceMs({ metadata, status }: ObjectOf<K>): number {
    if (status?.conditions !== undefined) return 0;
    const leftMs = Date.parse(metadata.creationTimestamp) + secretGraceMs - this.#clock.now();
    return leftMs > 0 && leftMs <= 2 * secretGraceMs ? leftMs : 0;
  }

  async #putInForce(object: ObjectOf<K>, id: string): Promise<{ verdict: Verdict; fields: Record<string, unknown> }> {
    if (asksForForeignId(kinds[this.#rules.kind].idPrefix, object.metadata)) return { verdict: refused(invalidId, true), fields: {} };
    if (!holdsItsId(this.#cache, object)) return { verdict: refused(taken, true), fields: {} };
    const namespace = object.metadata.namespace ?? '';
    const organization = organizationOf(this.#caches.Organization, namespace);
    if (organization === undefined) {
      await this.#retract(id);
      return {
        verdict: refused({ reason: 'OrganizationNotFound', message: `no Organization names the namespace ${namespace}` }, false),
        fields: {},
      };
    }
    const { recordKind } = this.#rules;
    const published = async (): Promise<RecordByKind[R] | null> => (recordKind === null ? null : this.#publisher.get(recordKind, id));
    const evaluation = await this.#rules.evaluate(object, organizationFacts(organization), published);
    const { refusal, unresolved, record, status = {} } = evaluation;
    if (recordKind !== null && record !== undefined) await this.#publisher.publish(recordKind, record);
    const isInForce = recordKind === null ? refusal === undefined && unresolved === undefined : record !== undefined;
    return {
      verdict: {
        accepted: refusal === undefined ? { status: 'True', reason: 'Accepted', message: '' } : { status: 'False', ...refusal },
        resolvedRefs:
          unresolved === undefined ? { status: 'True', reason: 'ResolvedRefs', message: '' } : { status: 'False', ...unresolved },
        programmed: isInForce ? { status: 'True', reason: 'Programmed', message: '' } : notProgrammed(await published()),
        isStalled: refusal !== undefined,
      },
      fields: status,
    };
  }

  /** Unless another live object has the id by now. */
  async #retract(id: string): Promise<void> {
    const { recordKind } = this.#rules;
    if (recordKind === null || this.#cache.byIndex(indexes.id, id).some(isLiveIn(this.#caches))) return;
    await this.#publisher.retract(recordKind, id);
    this.#rules.retracted?.(id);
  }
}

/** Whether the object may have a record: it is live, and so is its organization. */
function isLiveIn(caches: ControllerCaches): (object: { metadata: ObjectOf<PosthornKind>['metadata'] }) => boolean {
  return (object) => isLive(object) && organizationOf(caches.Organization, object.metadata.namespace ?? '') !== undefined;
}

function refused(refusal: Refusal, isStalled: boolean): Verdict {
  const unknown: Finding = { status: 'Unknown', reason: 'NotAccepted', message: '' };
  return {
    accepted: { status: 'False', ...refusal },
    resolvedRefs: unknown,
    programmed: { status: 'False', reason: 'NotAccepted', message: 'nothing is in force' },
    isStalled,
  };
}
