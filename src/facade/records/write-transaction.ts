import { z } from 'zod';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import { parsePlainJson } from '../../core/plain-json.ts';
import type { ObjectOf, PosthornObject } from '../../resources/kinds.ts';
import { callerOrganization } from '../http/caller.ts';
import { toPosthornError } from '../http/error-response.ts';
import type { Call, Place } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { mapConcurrently } from './concurrently.ts';
import { readSecret } from './credentials.ts';
import { find, getByName } from './lookup.ts';
import { nouns } from './nouns.ts';
import { changeSpec, createObject, deleteObject } from './object-writes.ts';
import { foreignOwners } from './owned-spec.ts';
import { deleteSecret, SecretDraft, type SentSecrets, secretRefsIn, unusedSecrets } from './secrets.ts';
import type { WantedSlug } from './slug.ts';
import { awaitGone, awaitInForce, waitForCache } from './visibility.ts';
import { refuseForeign, refuseForeignLists, routesNaming, type Spec, withoutNamed } from './write-rules.ts';

type Route = PosthornObject<'Route'>;
type Identified = { kind: ServedKind; metadata: { namespace?: string; name: string; uid: string; generation?: number } };
/** Records a write under the lock: the next holder waits until its caches show it. */
type RecordWrite = (object: Identified, isDeleted?: boolean) => void;

export interface WriteOptions {
  /** Kinds whose caches the work relies on: it holds the lock, and they show what earlier holders wrote. Absent: it needs neither. */
  reads?: readonly ServedKind[] | undefined;
  /** The answer to an import waits for visibility the less the longer its writes have taken. */
  isImport?: true;
}

/** Of an object that has just been made the controllers say after 3 seconds that its Secret is missing. */
const lateSecretMs = 5000;
const cacheDeadlineMs = 5000;

/**
 * The unit of work of every write of resources through the API. Families use its verbs inside `run`; nothing else writes resources.
 *
 * Where the process dies, or the store or Redis goes away, this is left, and this finishes or undoes it:
 *
 * | step | left | finished or undone by |
 * |---|---|---|
 * | lock: `SET NX` of a token (`OrganizationLock`) | the lock, for 30 s at most; others answer UNAVAILABLE after 10 s | its expiry |
 * | recovery: pending entries of the log, object by object | the entry, until all its objects are done | the next holder, which begins the entry anew: each write names a uid and is repeated without harm |
 * | `create`: the object, then its Secrets | an object without Secrets, which is not ready (`ResolvedRefs`) and published without credentials | an equal request with the Idempotency-Key: `adopt` removes it, and it is made anew; without a key whoever deletes or changes it |
 * | `change`: new Secrets under names that nothing uses, one apply that flips from old to new, removal of the old Secrets | before the apply the new Secrets, after it the old ones: unused | their owner: they go with the resource. The request may be repeated: what is equal is no write |
 * | `delete`, `enable`, one write | nothing: it is made or not | the request, repeated |
 * | `delete`, `enable`, several writes: announcement, entry of the log, the writes, removal of the entry | announcement without entry: nothing. Entry: some of the writes, or all of them | the next holder of the lock, or `recoverPendingWrites` of any API process within 30 s; an announcement without entry is forgotten |
 * | `onRollback`: the writes of an import that is whole or not at all | some of them | an equal request with the Idempotency-Key: what was made bears its mark, counts as made, and the rest is made; without a key an equal import, by its conflict strategy |
 * | commit: the release of the lock, with notes for the next holder | the writes, and the lock without notes | the expiry of the lock, 30 s during which the caches of all replicas follow |
 * | visibility: nothing is written | the writes, and no answer | the request, repeated, with the Idempotency-Key: the answer that was kept, or `adopt` |
 *
 * The lock is no fence: who is paused for longer than 30 s may write beside the next holder. Each write therefore holds by itself: a create is decided
 * by ALREADY_EXISTS, a change by the version that was read, a deletion by the uid. What only the lock keeps is that two routes connect the same or that
 * a resource is referred to when it is deleted; the controllers then say so on the route.
 */
export class WriteTransaction {
  readonly #call: Call;
  readonly #record: RecordWrite;
  /** Of what the answer is about, by uid: waits until it is visible. */
  readonly #visible = new Map<string, (timeoutMs: number) => Promise<void>>();
  readonly #undo: (() => Promise<void>)[] = [];

  private constructor(call: Call, record: RecordWrite) {
    this.#call = call;
    this.#record = record;
  }

  /** Begins, runs `work`, commits when it returns and rolls back when it throws. Resolves when what was written is visible, or has a warning put into the answer. */
  static async run<T>(call: Call, { reads, isImport }: WriteOptions, work: (write: WriteTransaction) => Promise<T>): Promise<T> {
    const { clock, inForceTimeoutMs } = call.services;
    const startedAtMs = clock.now();
    const begin = async (record: RecordWrite): Promise<{ write: WriteTransaction; result: T }> => {
      const write = new WriteTransaction(call, record);
      try {
        return { write, result: await work(write) };
      } catch (error) {
        await write.rollBack();
        throw error;
      }
    };
    const { write, result } = await (reads === undefined ? begin(() => {}) : withLock(call, reads, begin));
    const remainingMs = inForceTimeoutMs - (clock.now() - startedAtMs);
    const timeoutMs = isImport ? Math.max(inForceTimeoutMs / 4, remainingMs) : inForceTimeoutMs;
    await Promise.all([...write.#visible.values()].map((wait) => wait(timeoutMs)));
    return result;
  }

  /** Makes an object with its Secrets. `specFor` gets the draft of those and runs for each slug that is tried; `mark` is left on the object. */
  async create<K extends ServedKind>(
    kind: K,
    slug: WantedSlug,
    specFor: (secrets: SentSecrets) => Promise<Spec>,
    mark = this.#call.idempotency?.mark,
  ): Promise<ObjectOf<K>> {
    const call = this.#call;
    let secrets = new SecretDraft(call, '');
    const draftFor = (name: string): Promise<Spec> => {
      secrets = new SecretDraft(call, name);
      return specFor(secrets);
    };
    const object = await createObject(call, kind, slug, draftFor, mark);
    this.#record(object);
    try {
      await secrets.store(object);
    } catch (error) {
      await deleteObject(call, object);
      throw error;
    }
    return this.#shown(object);
  }

  /** Changes an object and its Secrets. `specFor` gets the object as it is, and runs again when somebody else changes it meanwhile. */
  async change<K extends ServedKind>(
    kind: K,
    idOrSlug: string,
    specFor: (current: ObjectOf<K>, secrets: SentSecrets) => Promise<Spec>,
  ): Promise<ObjectOf<K>> {
    const call = this.#call;
    let secrets = new SecretDraft(call, '');
    let desired: Spec = {};
    let unused: string[] = [];
    const draftFor = async (current: ObjectOf<K>): Promise<Spec> => {
      await secrets.discard();
      secrets = new SecretDraft(call, current.metadata.name, current);
      desired = await secrets.moved(await specFor(current, secrets));
      return desired;
    };
    const storeSecrets = async (current: ObjectOf<K>): Promise<void> => {
      unused = await unusedSecrets(call, current, desired);
      await secrets.store({ kind, metadata: current.metadata, spec: desired });
    };
    const changed = await changeSpec(call, kind, () => find(call, kind, idOrSlug), draftFor, storeSecrets).catch(async (error: unknown) => {
      // After a write without an answer the Secret may be in use; it is owned by the resource and goes with it.
      if (!isPosthornError(error, 'UNAVAILABLE')) await secrets.discard();
      throw error;
    });
    this.#record(changed);
    for (const name of unused) await deleteSecret(call, name);
    return this.#shown(changed);
  }

  /** Deletes objects of one kind, all or none, and removes them from the routes that name them. FIELD_MANAGED when one of them, or such a list, is owned by others; then `check` may refuse. */
  async delete<K extends ServedKind>(
    objects: readonly ObjectOf<K>[],
    check: (object: ObjectOf<K>, call: Call) => Promise<void> = async () => {},
  ): Promise<void> {
    const call = this.#call;
    refuseForeign(objects);
    await refuseForeignLists(call, objects);
    for (const object of objects) await check(object, call);
    const [first] = objects;
    if (first === undefined) return;
    const { kind } = first;
    const named = objects.map(identityOf);
    const isOneWrite = named.length === 1 && routesNaming(call, kind, namesOf(named)).length === 0;
    await (isOneWrite ? carryOut : carryOutLogged)(call, { action: 'delete', kind, objects: named }, this.#record);
    for (const object of objects) this.#visible.set(object.metadata.uid, (timeoutMs) => awaitGone(call, kind, object, timeoutMs));
  }

  /** Pauses or resumes routes, all or none. FIELD_MANAGED when others own the switch of one. */
  async enable(routes: readonly Route[], enabled: boolean): Promise<void> {
    const others = routes.filter(({ spec }) => spec.enabled !== enabled);
    refuseForeign(others, ({ metadata }) => foreignOwners(metadata.managedFields ?? [], 'enabled'));
    const begun = { action: 'enable', kind: 'Route', objects: others.map(identityOf), enabled } as const;
    for (const route of await (others.length <= 1 ? carryOut : carryOutLogged)(this.#call, begun, this.#record)) this.#shown(route);
  }

  /** Counts as written here what an equal request made before it was broken off. Null when that lacks a Secret: then it goes, and its slug is free. */
  async adopt<K extends ServedKind>(made: ObjectOf<K>): Promise<ObjectOf<K> | null> {
    const call = this.#call;
    const timeoutMs = Math.max(call.services.inForceTimeoutMs, lateSecretMs);
    const secrets = await Promise.all(secretRefsIn(made.spec).map((ref) => readSecret(call, made, ref, timeoutMs)));
    if (!secrets.includes(null)) return this.#shown(made);
    await deleteObject(call, made);
    await awaitGone(call, made.kind, made, call.services.inForceTimeoutMs);
    return null;
  }

  /** Removes what this or an equal request made and nobody has seen; the answer does not wait for that. One that cannot be removed holds up no other. */
  async takeBack(made: readonly Identified[]): Promise<void> {
    const errors: unknown[] = [];
    await lastAlone(made, async (object) => {
      try {
        await deleteObject(this.#call, object);
        this.#record(object, true);
      } catch (error) {
        errors.push(error);
      }
    });
    if (errors.length > 0) throw errors[0];
  }

  /** Runs the writes of all items, some at a time and the last one alone: the next holder of the lock waits until its caches show that one. */
  all<T, R>(items: readonly T[], write: (item: T, index: number) => Promise<R>): Promise<R[]> {
    return lastAlone(items, write);
  }

  /** Runs `undo` before the lock is released when the work throws. That it fails is logged. */
  onRollback(undo: () => Promise<void>): void {
    this.#undo.push(undo);
  }

  /** Undoes what has been done. */
  async rollBack(): Promise<void> {
    const { logger } = this.#call.services;
    await mapConcurrently(this.#undo.splice(0), async (undo) => {
      await undo().catch((cause: unknown) => logger.warn({ err: cause }, 'the rollback of a failed change is incomplete'));
    });
  }

  #shown<K extends ServedKind>(object: ObjectOf<K>): ObjectOf<K> {
    this.#visible.set(object.metadata.uid, (timeoutMs) => awaitInForce(this.#call, object.kind, object, timeoutMs));
    return object;
  }
}

/** Finishes the pending entries of an organization's write-ahead log, after a process died or the store was unreachable. */
export async function recoverPendingWrites(services: Place['services'], org: string): Promise<void> {
  const record = await services.registry.get('organization', org);
  if (record !== null) await withLock({ services, caller: { organization: callerOrganization(record) } }, [], async () => {});
}

/** What a holder of the lock wrote last of one kind; generation null: deleted. */
const writeNote = z.object({ namespace: z.string(), name: z.string(), uid: z.string(), generation: z.int().nullable() });

/**
 * Runs `action` under the lock of the organization. Before, pending entries of the write-ahead log are finished, and the caches of `reads` show
 * what earlier holders wrote on any replica. Throws UNAVAILABLE when the caches lag behind.
 */
function withLock<T>(place: Place, reads: readonly ServedKind[], action: (record: RecordWrite) => Promise<T>): Promise<T> {
  const { services, caller } = place;
  return services.organizationLock.run(caller.organization.id, async (earlier, leaveNote) => {
    const notes = new Map(earlier);
    const record: RecordWrite = ({ kind, metadata: { namespace = '', name, uid, generation = null } }, isDeleted = false) => {
      const text = JSON.stringify({ namespace, name, uid, generation: isDeleted ? null : generation } satisfies z.input<typeof writeNote>);
      notes.set(kind, text);
      leaveNote(kind, text);
    };
    const awaitNoted = async (kinds: readonly ServedKind[]): Promise<void> => {
      for (const kind of kinds) {
        const text = notes.get(kind);
        if (text !== undefined) await awaitWrite(place, kind, text);
      }
    };
    const pending = await services.writeAheadLog.pending(caller.organization.id);
    if (pending.size > 0) {
      await awaitNoted(['Route']);
      await recoverPending(place, pending, record);
    }
    await awaitNoted(reads);
    return action(record);
  });
}

async function awaitWrite<K extends ServedKind>(place: Place, kind: K, note: string): Promise<void> {
  const { namespace, name, uid, generation } = writeNote.parse(parsePlainJson(note));
  const { caches, clock, store } = place.services;
  const isSeen = (object: PosthornObject<ServedKind> | undefined): boolean => {
    if (object === undefined) return generation === null;
    return object.metadata.uid !== uid || (generation !== null && object.metadata.generation >= generation);
  };
  // Not in the cache: not there yet, or deleted since without a note, by kubectl or by a family whose deletions look at nothing.
  if (generation !== null && caches[kind].get({ namespace, name }) === undefined) {
    const isThere = await store.get(kind, { namespace, name }).then(
      () => true,
      (error: unknown) => (isPosthornError(error, 'RESOURCE_NOT_FOUND') ? false : Promise.reject(error)),
    );
    if (!isThere) return;
  }
  if (await waitForCache(caches[kind], { namespace, name }, isSeen, { timeoutMs: cacheDeadlineMs, clock })) return;
  throw new PosthornError('UNAVAILABLE', 'The configuration is not up to date here yet.', { retryAfterSeconds: 1 });
}

const named = z.array(z.object({ name: z.string(), uid: z.string() }));
type Named = z.output<typeof named>;
const servedKind = z.custom<ServedKind>((value) => typeof value === 'string' && Object.hasOwn(nouns, value));

/** An entry of the write-ahead log: several writes that are made together; each may be repeated. */
const logEntry = z.discriminatedUnion('action', [
  z.object({ action: z.literal('delete'), kind: servedKind, objects: named }),
  z.object({ action: z.literal('enable'), kind: z.literal('Route'), objects: named, enabled: z.boolean() }),
]);
type LogEntry = z.output<typeof logEntry>;

/** The entry is written before the first write. It stays when the outcome is not known, and goes when a write is refused. */
async function carryOutLogged(place: Place, entry: LogEntry, record: RecordWrite): Promise<Route[]> {
  const { services, caller } = place;
  const org = caller.organization.id;
  const id = await services.writeAheadLog.begin(org, JSON.stringify(entry));
  const end = (): Promise<void> =>
    services.writeAheadLog.end(org, id).catch((error: unknown) => {
      services.logger.warn(
        { err: error, organization: org },
        'the log entry of a completed write was not removed; it is checked again later',
      );
    });
  try {
    const changed = await carryOut(place, entry, record);
    await end();
    return changed;
  } catch (error) {
    if (toPosthornError(error).status < 500) await end();
    throw error;
  }
}

/** Returns the routes that are enabled or disabled as the entry says. */
async function carryOut(place: Place, entry: LogEntry, record: RecordWrite): Promise<Route[]> {
  switch (entry.action) {
    case 'delete': {
      const { kind, objects } = entry;
      await leaveLists(place, kind, namesOf(objects), record);
      for (const { name, uid } of objects) {
        const object = { kind, metadata: { namespace: place.caller.organization.namespace, name, uid } };
        await deleteObject(place, object);
        record(object, true);
      }
      return [];
    }
    case 'enable': {
      const { enabled } = entry;
      const changed = await lastAlone(entry.objects, ({ name }) => changeRoute(place, name, (spec) => ({ ...spec, enabled }), record));
      return changed.filter((route) => route !== null);
    }
    default:
      return entry satisfies never;
  }
}

/** Takes objects out of the routes that name them. Routes that name a channel and no other send their alerts to none then. */
async function leaveLists(place: Place, kind: ServedKind, names: ReadonlySet<string>, record: RecordWrite): Promise<void> {
  for (const { metadata } of routesNaming(place, kind, names))
    await changeRoute(place, metadata.name, (spec) => withoutNamed(spec, kind, names) ?? spec, record);
}

/** Null: it is gone. */
async function changeRoute(place: Place, name: string, specFor: (spec: Route['spec']) => Spec, record: RecordWrite): Promise<Route | null> {
  try {
    const load = (): Promise<Route> => find(place, 'Route', name);
    const changed = await changeSpec(place, 'Route', load, async ({ spec }) => specFor(spec));
    record(changed);
    return changed;
  } catch (error) {
    if (isPosthornError(error, 'RESOURCE_NOT_FOUND')) return null;
    throw error;
  }
}

/**
 * Finishes the pending entries of the write-ahead log, object by object: a write that is refused by now does not hold up the others. Throws UNAVAILABLE when
 * entries stay pending.
 */
async function recoverPending(place: Place, pending: ReadonlyMap<string, string>, record: RecordWrite): Promise<void> {
  const { services, caller } = place;
  const org = caller.organization.id;
  const unlessRefused = async (action: () => Promise<void>): Promise<void> => {
    try {
      await action();
    } catch (error) {
      if (isPosthornError(error, 'UNAVAILABLE')) throw error;
      services.logger.warn({ err: error, organization: org }, 'an interrupted write of several resources cannot be completed');
    }
  };
  for (const [id, text] of pending) {
    await unlessRefused(async () => {
      const entry = logEntry.parse(parsePlainJson(text));
      for (const object of entry.objects) await unlessRefused(() => finish(place, { ...entry, objects: [object] }, object, record));
    });
    await services.writeAheadLog.end(org, id);
  }
}

/** But for what has the name of the object by now and is another one. */
async function finish(place: Place, entry: LogEntry, { name, uid }: Named[number], record: RecordWrite): Promise<void> {
  const current = await getByName(place, entry.kind, name);
  if (current !== null && current.metadata.uid !== uid) return;
  if (current !== null && entry.action === 'delete') await refuseForeignLists(place, [current]);
  await carryOut(place, entry, record);
}

async function lastAlone<T, R>(items: readonly T[], write: (item: T, index: number) => Promise<R>): Promise<R[]> {
  const written = await mapConcurrently(items.slice(0, -1), write);
  const last = items.at(-1);
  return last === undefined ? written : [...written, await write(last, items.length - 1)];
}

function identityOf({ metadata: { name, uid } }: Identified): Named[number] {
  return { name, uid };
}

function namesOf(objects: Named): ReadonlySet<string> {
  return new Set(objects.map(({ name }) => name));
}
