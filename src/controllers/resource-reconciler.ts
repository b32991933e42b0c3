import type { Refusal } from '../compile/compiled.ts';
import { compileOrganization, type OrganizationFacts, organizationFacts } from '../compile/organization.ts';
import { addressNotAllowed, type OutgoingAddress, outgoingRefusal, type WorkerEgress } from '../compile/outgoing-address.ts';
import type { Clock } from '../core/clock.ts';
import { carriesCredential } from '../core/credential-names.ts';
import { requestsAnotherId, requestsForeignId } from '../core/ids.ts';
import type { RecordByKind } from '../core/records.ts';
import { isRecord } from '../resources/field-tree.ts';
import { kinds, type ObjectOf, type PosthornKind, type PosthornObject, type RecordKindOf } from '../resources/kinds.ts';
import type { ReconcileResult } from '../runtime/run-controller.ts';
import type { ResourceCache } from '../store/cache.ts';
import type { Key } from '../store/store.ts';
import { conditionInputs, credentialWarnings, type Finding, type Verdict } from './conditions.ts';
import type { ControllerCaches } from './controller-caches.ts';
import type { CredentialsSink } from './credentials-sink.ts';
import { DeletedObjectIds } from './deleted-object-ids.ts';
import { disabledBy, isDisabled } from './disabled.ts';
import {
  hasSettledId,
  holderOfId,
  holdsItsId,
  idOf,
  isLive,
  keepsRecords,
  organizationOf,
  requestsApiId,
  requestsOwnedId,
} from './held-ids.ts';
import { notProgrammed, programmed } from './programmed-condition.ts';
import { idOfAnother, type RecordSink } from './record-sink.ts';
import { sayingOutage } from './redis-outage.ts';
import { allHaveEarlierGeneration, complaintsAbout, type UnreadyReference, unreadyReferences } from './reference-state.ts';
import { staysWhileRetained } from './retained-organizations.ts';
import type { ObjectSecrets, SecretReader } from './secret-reader.ts';
import { refNotPermitted } from './shared-content.ts';
import type { StatusWriter } from './status-writer.ts';

/** The verdict of a kind's own rules on one object. */
export interface Evaluation<Published> {
  /** Why the object itself cannot be put in force; with a record, why it is suspended. */
  refusal?: Refusal;
  /** The reference that leads nowhere. With a record, `unreadyReferences` are reported beside it. */
  unresolved?: Refusal;
  /** What is published does its work without what `unresolved` names. */
  isPartial?: boolean;
  /** The record to publish. If it is absent, the published record stays; it is disabled if the object is disabled. */
  record?: Published;
  /** Where requests for the record go to. When workers never reach it, Accepted has the reason; the record is published all the same. */
  outgoing?: OutgoingAddress | undefined;
  /** What is in force is to end, too. */
  isWithdrawn?: boolean;
  /** Why what is published has no effect; `isStalled`: nothing but an edit of this object helps. */
  ineffective?: Refusal & { isStalled: boolean };
  /** When the object is reconciled again although nothing changes, in milliseconds since the epoch. */
  judgedAgainAtMs?: number | undefined;
  /** Further fields of the status. */
  status?: Record<string, unknown>;
}

/** A namespaced kind: how its objects become records. */
export interface RecordRules<K extends PosthornKind, Published, Stored = Published> {
  kind: K;
  /** `published` reads what is in force now. */
  evaluate(
    object: ObjectOf<K>,
    organization: OrganizationFacts,
    published: () => Promise<Stored | null>,
    secrets: ObjectSecrets,
  ): Promise<Evaluation<Published>>;
  /** Whether what is published does its work although these are not ready; absent: only if all of them are in force. */
  worksWithout?(object: ObjectOf<K>, unready: readonly UnreadyReference[]): boolean;
  /** The sink that receives the credentials of what is published; only of kinds for which the API has made Secrets that do not name it. */
  originOf?(stored: Stored): string | null;
  /** The record with this id is gone; also called when there was none. */
  retracted?(id: string): void;
}

export type PublishedRecord<K extends PosthornKind> = RecordByKind[NonNullable<RecordKindOf<K>>];

/** A kind whose records are in the registry, or that has none of its own but goes into those of others. */
export type ResourceRules<K extends PosthornKind> = RecordRules<K, PublishedRecord<K>>;

/** What the workers that serve an organization may reach; null: not known now. */
export type EgressOf = (organization: PosthornObject<'Organization'>) => WorkerEgress | null;

export interface ResourceReconcilerOptions {
  caches: ControllerCaches;
  status: StatusWriter;
  secrets: SecretReader;
  egressOf: EgressOf;
  clock: Clock;
}

/**
 * What an object refers to may be created just after it: the Secret that the API creates for it, and every other object of a directory that is
 * applied in alphabetical order. For so long after its creation no status reports that something is missing.
 */
const missingGraceMs = 3000;

/** For so long after its creation referrers do not report an object as not ready: its own status may wait for what it refers to. */
const unseenGraceMs = 2 * missingGraceMs;

/** How soon to look again whether what others have is still in the way; what is known to change brings the object back at once. */
const obstacleLookMs = 5000;

/** The longest wait for the next reconcile of an object: the wall clock may be set meanwhile. */
const maxWaitMs = 24 * 60 * 60 * 1000;

const taken: Refusal = { reason: 'IdTaken', message: 'an older object has the id that the annotation posthorn.dev/id requests' };

const invalidId: Refusal = { reason: 'InvalidId', message: 'the annotation posthorn.dev/id is not an id of this kind' };

const idOfApi: Refusal = {
  reason: 'IdTaken',
  message: 'the id that the annotation posthorn.dev/id requests is reserved for objects created through the API',
};

const withoutOrganization = 'OrganizationNotFound';

interface Result {
  verdict: Verdict;
  fields: Record<string, unknown>;
  isObstructed: boolean;
  /** References in the verdict that may not have been reconciled yet. */
  unseen: readonly UnreadyReference[];
  judgedAgainAtMs?: number | undefined;
}

/** Reconciles the objects of one namespaced kind: evaluate, publish, status; retract what is gone. */
export class ResourceReconciler<K extends PosthornKind, Published, Stored = Published> {
  readonly gone: DeletedObjectIds<K>;
  readonly #rules: RecordRules<K, Published, Stored>;
  readonly #sink: RecordSink<Published, Stored> | null;
  readonly #cache: ResourceCache<K>;
  readonly #caches: ControllerCaches;
  readonly #status: StatusWriter;
  readonly #secrets: SecretReader;
  readonly #credentials: CredentialsSink | null;
  readonly #egressOf: EgressOf;
  readonly #clock: Clock;

  constructor(
    rules: RecordRules<K, Published, Stored>,
    sink: RecordSink<Published, Stored> | null,
    cache: ResourceCache<K>,
    options: ResourceReconcilerOptions,
    credentials: CredentialsSink | null = null,
  ) {
    this.gone = new DeletedObjectIds(rules.kind);
    this.#rules = rules;
    this.#sink = sink;
    this.#cache = cache;
    this.#caches = options.caches;
    this.#status = options.status;
    this.#secrets = options.secrets;
    this.#credentials = credentials;
    this.#egressOf = options.egressOf;
    this.#clock = options.clock;
  }

  async reconcile(key: Key, signal: AbortSignal): Promise<ReconcileResult> {
    for (const id of this.gone.of(key)) {
      await this.#retract(id, key.namespace ?? '');
      this.gone.forget(key, id);
    }
    const object = this.#cache.get(key);
    if (object === undefined) return {};
    const id = idOf(this.#rules.kind, object);
    if (!isLive(object)) {
      await this.#retract(id, key.namespace ?? '');
      return {};
    }
    const organization = organizationOf(this.#caches.Organization, object.metadata.namespace ?? '');
    // Once it is settled the object comes back.
    if (organization !== undefined && !hasSettledId(organization)) return {};
    const { verdict, fields, isObstructed, unseen, judgedAgainAtMs } = await sayingOutage(
      { status: this.#status, cache: this.#cache, object, id },
      () => this.#putInForce(object, id),
    );
    signal.throwIfAborted();
    const graceMs = Math.max(lacksAnObject(verdict) ? this.#graceMs(object) : 0, this.#unseenMs(unseen));
    if (graceMs > 0) return { requeueAfterMs: graceMs };
    // Every installation sees objects without an Organization: the first report is enough.
    if (organization === undefined && isSaidToBeWithoutOrganization(object)) return {};
    const inputs = { ...conditionInputs(verdict), warnings: credentialWarnings(literalCredentialsIn(object.spec)) };
    await this.#status.write(this.#cache, object, inputs, { id, ...fields });
    if (isObstructed) return { requeueAfterMs: obstacleLookMs * (0.8 + 0.4 * Math.random()) };
    return judgedAgainAtMs === undefined ? {} : { requeueAfterMs: Math.min(judgedAgainAtMs - this.#clock.now(), maxWaitMs) };
  }

  /** How much longer the object is new; 0 once it has a status, and when the clocks disagree. */
  #graceMs({ metadata, status }: ObjectOf<K>): number {
    if (status?.conditions !== undefined) return 0;
    return this.#leftMs(Date.parse(metadata.creationTimestamp), missingGraceMs);
  }

  /** How much longer one of these is new. Its first status brings the object back sooner. */
  #unseenMs(unseen: readonly UnreadyReference[]): number {
    return Math.max(0, ...unseen.map(({ createdAtMs = 0 }) => this.#leftMs(createdAtMs, unseenGraceMs)));
  }

  #leftMs(fromMs: number, graceMs: number): number {
    const leftMs = fromMs + graceMs - this.#clock.now();
    return leftMs > 0 && leftMs <= 2 * graceMs ? leftMs : 0;
  }

  async #putInForce(object: ObjectOf<K>, id: string): Promise<Result> {
    if (requestsForeignId(kinds[this.#rules.kind].idPrefix, object.metadata)) return nothing(refused(invalidId, true));
    if (requestsApiId(this.#rules.kind, object)) return nothing(refused(idOfApi, true));
    const namespace = object.metadata.namespace ?? '';
    const organization = organizationOf(this.#caches.Organization, namespace);
    if (organization === undefined) {
      // What a retained organization has queued needs the records by which it was to be delivered.
      if (!this.#keepsRecords(namespace)) await this.#retract(id, namespace);
      return nothing(refused({ reason: withoutOrganization, message: `the namespace ${namespace} belongs to no Organization` }, false));
    }
    if (requestsOwnedId(this.#caches, this.#cache, object)) return nothing(refused(idOfAnother, true));
    if (!holdsItsId(this.#caches, this.#cache, object)) return nothing(refused(taken, true));
    const sink = this.#sink;
    const facts = organizationFacts(organization);
    const published = async (): Promise<Stored | null> => (sink === null ? null : sink.get(id, facts));
    const secrets = this.#secrets.of({
      user: object,
      organization: facts,
      publishedOrigin: async () => {
        const stored = await published();
        if (stored !== null) return this.#rules.originOf?.(stored);
        // The object may have had another id, under which its origin is published: a new id opens no new origin.
        return requestsAnotherId(kinds[this.#rules.kind].idPrefix, object.metadata) ? null : undefined;
      },
    });
    const evaluation = await this.#rules.evaluate(object, facts, published, secrets);
    const { generation } = object.metadata;
    await this.#credentials?.publish({ id, org: facts.id, generation }, await secrets.all());
    const { record, status = {}, ineffective } = evaluation;
    if (evaluation.isWithdrawn === true) {
      await sink?.retract(id, namespace);
      this.#rules.retracted?.(id);
    }
    const obstacle = sink === null || record === undefined ? null : await sink.publish(record);
    const unreachable = evaluation.outgoing === undefined ? undefined : this.#unreachable(object, evaluation.outgoing, organization);
    const refusal = evaluation.refusal ?? obstacle?.refusal ?? unreachable;
    const unready = record === undefined || obstacle !== null ? [] : unreadyReferences(this.#caches, object);
    const complaints = [...complaintsAbout(unready), ...[evaluation.unresolved, obstacle?.unresolved].filter((each) => each !== undefined)];
    const unresolved = together(complaints);
    const isPublished = sink === null ? refusal === undefined && unresolved === undefined : record !== undefined && obstacle === null;
    const stored = isPublished ? null : await published();
    const disabling = disablingOf(object);
    if (stored !== null && disabling !== null) await sink?.disable(stored, disabling.reason);
    return {
      verdict: {
        accepted: refusal === undefined ? { status: 'True', reason: 'Accepted', message: '' } : { status: 'False', ...refusal },
        resolvedRefs:
          unresolved === undefined ? { status: 'True', reason: 'ResolvedRefs', message: '' } : { status: 'False', ...unresolved },
        programmed: isPublished
          ? programmed(evaluation.refusal !== undefined)
          : notProgrammed(stored === null || sink === null ? null : { generation: sink.generationOf(stored) }, disabling !== null),
        ...(disabling !== null && { disabled: disabledBy(object) }),
        ineffective: ineffective && { status: 'False', reason: ineffective.reason, message: ineffective.message },
        isPartial: isPublished && unresolved !== undefined && this.#worksWithout(object, unready, evaluation),
        isStalled:
          evaluation.refusal !== undefined || unreachable !== undefined || (unresolved === undefined && ineffective?.isStalled === true),
      },
      fields: status,
      isObstructed: obstacle !== null,
      unseen: unready.filter(({ state }) => state === 'unseen'),
      judgedAgainAtMs: evaluation.judgedAgainAtMs,
    };
  }

  #worksWithout(object: ObjectOf<K>, unready: readonly UnreadyReference[], { unresolved, isPartial }: Evaluation<Published>): boolean {
    if (unresolved !== undefined && isPartial !== true) return false;
    return this.#rules.worksWithout?.(object, unready) ?? allHaveEarlierGeneration(unready);
  }

  /** While it is unknown what the workers may reach, the condition of this generation stays. */
  #unreachable(object: ObjectOf<K>, outgoing: OutgoingAddress, organization: PosthornObject<'Organization'>): Refusal | undefined {
    const egress = this.#egressOf(organization);
    if (egress !== null) return outgoingRefusal(outgoing, egress, compileOrganization(organization)) ?? undefined;
    const { generation } = object.metadata;
    const { reason, message } =
      object.status?.conditions?.find((each) => each.reason === addressNotAllowed && each.observedGeneration === generation) ?? {};
    return reason === undefined || message === undefined ? undefined : { reason, message };
  }

  /** Unless another live object may use the id now. */
  async #retract(id: string, namespace: string): Promise<void> {
    if (this.#sink === null) return;
    const holder = holderOfId(this.#caches, this.#cache, id);
    if (holder !== undefined && this.#mayHaveRecord(holder)) return;
    await this.#sink.retract(id, namespace);
    await this.#credentials?.retract(id);
    this.#rules.retracted?.(id);
  }

  /** Whether the object may have a record: it is live, and so is its organization, or that is retained with records of the kind. */
  #mayHaveRecord(object: ObjectOf<K>): boolean {
    const { namespace = '' } = object.metadata;
    return isLive(object) && (organizationOf(this.#caches.Organization, namespace) !== undefined || this.#keepsRecords(namespace));
  }

  #keepsRecords(namespace: string): boolean {
    return staysWhileRetained(this.#rules.kind) && keepsRecords(this.#caches, namespace);
  }
}

/** Whether the spec disables the object, and why: that needs nothing of what it refers to. */
function disablingOf({ spec }: { spec: object }): { reason: string | null } | null {
  if (!isDisabled({ spec })) return null;
  return { reason: 'disabledReason' in spec && typeof spec.disabledReason === 'string' ? spec.disabledReason : null };
}

/** Whether an object that this one refers to, or its organization, does not exist. A Secret that lacks a key does. */
function lacksAnObject({ accepted, resolvedRefs }: Verdict): boolean {
  return [accepted, resolvedRefs].some(
    ({ reason }) => reason === refNotPermitted || (reason.endsWith('NotFound') && !reason.endsWith('KeyNotFound')),
  );
}

function isSaidToBeWithoutOrganization({ metadata, status }: ObjectOf<PosthornKind>): boolean {
  return (
    status?.conditions?.some((each) => each.reason === withoutOrganization && each.observedGeneration === metadata.generation) === true
  );
}

function nothing(verdict: Verdict): Result {
  return { verdict, fields: {}, isObstructed: false, unseen: [] };
}

/** One complaint for all: with the reason of the first. */
function together(complaints: readonly Refusal[]): Refusal | undefined {
  const [first] = complaints;
  return first && { reason: first.reason, message: complaints.map(({ message }) => message).join('; ') };
}

function refused(refusal: Refusal, isStalled: boolean): Verdict {
  const unknown: Finding = { status: 'Unknown', reason: 'NotAccepted', message: '' };
  return {
    accepted: { status: 'False', ...refusal },
    resolvedRefs: unknown,
    programmed: { status: 'False', reason: 'NotAccepted', message: 'no generation is programmed' },
    isStalled,
  };
}

/** Paths of the values of headers in a spec that are credentials in clear, such as `spec.http.headers[Authorization].value`, wherever the list is. */
function literalCredentialsIn(spec: unknown, path = 'spec'): string[] {
  if (Array.isArray(spec))
    return spec.flatMap((each: unknown, index) => {
      if (!isRecord(each)) return [];
      const { name, value } = each;
      if (typeof name !== 'string' || typeof value !== 'string') return literalCredentialsIn(each, `${path}[${index}]`);
      return path.endsWith('.headers') && carriesCredential({ name, value }) ? [`${path}[${name}].value`] : [];
    });
  if (!isRecord(spec)) return [];
  return Object.entries(spec).flatMap(([member, inner]) => literalCredentialsIn(inner, `${path}.${member}`));
}
