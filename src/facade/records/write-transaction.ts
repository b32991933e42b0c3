import { z } from 'zod';
import { isPosthornError } from '../../core/errors.ts';
import { parsePlainJson } from '../../core/plain-json.ts';
import type { ObjectOf, PosthornObject } from '../../resources/kinds.ts';
import { versionOf } from '../../store/store.ts';
import { callerOrganization } from '../http/caller.ts';
import { toPosthornError } from '../http/error-response.ts';
import type { Call, CallContext } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { mapConcurrently } from './concurrently.ts';
import { find, getByName } from './lookup.ts';
import { nouns } from './nouns.ts';
import { changeSpec, createObject, deleteObject } from './object-writes.ts';
import { foreignOwners } from './owned-spec.ts';
import { readSecret } from './read-secret.ts';
import { requireVersions } from './record-versions.ts';
import { deleteSecret, SecretDraft, type SentSecrets, secretRefsIn, unusedSecrets } from './secret-draft.ts';
import type { WantedSlug } from './slug.ts';
import { awaitDeleted, awaitProgrammed, awaitRecordedWrite, noteOf, type Written } from './visibility.ts';
import { refuseForeign, refuseForeignLists, routesNaming, type Spec, withoutNamed } from './write-rules.ts';

type Route = PosthornObject<'Route'>;
/** Records a write under the lock: the next holder waits until its caches show it. */
type RecordWrite = (object: Written, isDeleted?: boolean) => void;

export interface WriteOptions {
  /** Kinds whose caches the work relies on: it holds the lock, and they show what earlier holders wrote. Absent: it needs neither. */
  reads?: readonly ServedKind[] | undefined;
  /** The answer to an import waits for visibility the less the longer its writes have taken. */
  isImport?: true;
}

/** After 3 seconds controllers report that the Secret of a new object is missing. */
const lateSecretMs = 5000;

/**
 * The unit of work of all writes of resources through the API. Families call its verbs within `run`; no other code writes resources. A resource store has no
 * transactions, so this comment lists for each step what a crash (or an outage of the store or of Redis) leaves behind, and who finishes or undoes it.
 *
 * 1. Lock, where `reads` are given. Left: the lock. It expires after 30 s; until then requests that need it wait 10 s and answer UNAVAILABLE.
 * 2. Recovery of what earlier holders left in the log, object by object. Left: the log entry. The next holder repeats all of it: a deletion names a uid, and
 *    setting a switch or leaving a list twice is the same as once.
 * 3. Checks by the caller, on caches that show what earlier holders wrote. Left: nothing.
 * 4. Writes.
 *    - `create` writes the object, then its Secrets. Left: an object that lacks Secrets and reports so in its conditions. An equal request with the same
 *      Idempotency-Key finds the mark on the object: `adopt` takes it if it is complete, else removes it and makes a new one. Without a key the
 *      object stays until it is completed or deleted.
 *    - `change` writes Secrets under names that nothing uses, then applies the spec, which flips from the old ones to the new, then deletes the old ones. Left:
 *      the old state with unused new Secrets, or the new state with unused old ones. Either set is owned by the object and goes with it. An equal request
 *      finds the rest to do.
 *    - `delete` and `enable` of one object are one write. Left: nothing. Where they are several writes the organization is announced to `RecoveryScanner`,
 *      then the log entry is written, then the resources, then the entry is removed. Left: an announcement without an entry, which is forgotten; or
 *      an entry, which the next holder of the lock finishes, or `recoverPendingWrites` of any API process within 30 s.
 *    - `onRollback` serves an import that is whole or not at all. It undoes the writes when one of them fails, not after a crash. Left: some of the writes.
 *      An equal request with the key finds the marks and makes the rest; without a key an equal import meets conflicts, which its strategy decides.
 * 5. Commit: the script that releases the lock also leaves notes, by which the next holder waits for its caches. Left: the writes, and the lock without notes.
 *    It expires after 30 s, and watches have brought the writes into all caches by then.
 * 6. Visibility: the answer waits, and nothing is written. Left: the writes without an answer. An equal request with the key gets the answer that was kept,
 *    or adopts what was made.
 *
 * The lock is no fence: a process that is paused for more than 30 s writes beside the next holder. So each write is safe by itself: ALREADY_EXISTS
 * decides a create, the version that was read a change, and the uid a deletion. Only checks across resources depend on the lock (routes with one connection, a
 * deletion of what is referred to); the controllers report a reference that leads nowhere in the conditions of the route.
 *
 * `test/facade/write-crashes.test.ts` kills a process before and after each of these writes.
 */
export class WriteTransaction {
  readonly #call: Call;
  readonly #record: RecordWrite;
  /** Functions that wait until what the answer is about is visible, by its uid. */
  readonly #visible = new Map<string, (timeoutMs: number) => Promise<void>>();
  readonly #undo: (() => Promise<void>)[] = [];

  private constructor(call: Call, record: RecordWrite) {
    this.#call = call;
    this.#record = record;
  }

  /**
   * Begins, runs `work`, commits when it returns and rolls back when it throws. Resolves when what was written is visible; the answer gets a warning when that
   * takes too long.
   */
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

  /** Makes an object with its Secrets. `specFor` gets the draft of those and runs for each slug that is tried; `mark` is stored on the object. */
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

  /** Changes an object and its Secrets. `specFor` gets the object as it is, and runs again after a concurrent change. */
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

  /**
   * Deletes objects of one kind, all or none, and removes them from the routes that name them. FIELD_MANAGED when another manager owns one of them or such
   * a list; after that `check` may refuse each. With If-Match, an object that no route names is CONFLICT when it has been written since it was read. One that
   * routes name is PRECONDITION_FAILED when its version is another one once the log entry is written. A change that comes later does not save it.
   */
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
    if (named.length === 1 && routesNaming(call, kind, namesOf(named)).length === 0) {
      await deleteObject(call, first, call.ifMatch === null ? undefined : versionOf(first));
      this.#record(first, true);
    } else await carryOutLogged(call, { action: 'delete', kind, objects: named }, this.#record, () => requireVersions(call, objects));
    for (const object of objects) this.#visible.set(object.metadata.uid, (timeoutMs) => awaitDeleted(call, kind, object, timeoutMs));
  }

  /** Pauses or resumes routes, all or none. FIELD_MANAGED when others own the switch of one. */
  async enable(routes: readonly Route[], enabled: boolean): Promise<void> {
    const others = routes.filter(({ spec }) => spec.enabled !== enabled);
    refuseForeign(others, ({ metadata }) => foreignOwners(metadata.managedFields ?? [], 'enabled'));
    const begun = { action: 'enable', kind: 'Route', objects: others.map(identityOf), enabled } as const;
    for (const route of await (others.length <= 1 ? carryOut : carryOutLogged)(this.#call, begun, this.#record)) this.#shown(route);
  }

  /** Counts as written here what an equal request made before it was aborted. Null when that lacks a Secret: then it goes, and its slug is free. */
  async adopt<K extends ServedKind>(made: ObjectOf<K>): Promise<ObjectOf<K> | null> {
    const call = this.#call;
    const timeoutMs = Math.max(call.services.inForceTimeoutMs, lateSecretMs);
    const secrets = await Promise.all(secretRefsIn(made.spec).map((ref) => readSecret(call, made, ref, timeoutMs)));
    if (!secrets.includes(null)) return this.#shown(made);
    await deleteObject(call, made);
    await awaitDeleted(call, made.kind, made, call.services.inForceTimeoutMs);
    return null;
  }

  /** Removes unseen objects of this or an equal request. The answer does not wait for it. One that cannot be removed holds up no other. */
  async takeBack(made: readonly Written[]): Promise<void> {
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

  /** Registers `undo`, which runs before the lock is released when the work throws. */
  onRollback(undo: () => Promise<void>): void {
    this.#undo.push(undo);
  }

  /** Runs the functions that `onRollback` has registered. A failure is logged. */
  async rollBack(): Promise<void> {
    const { logger } = this.#call.services;
    await lastAlone(this.#undo.splice(0), async (undo) => {
      await undo().catch((cause: unknown) => logger.warn({ err: cause }, 'the rollback of a failed change is incomplete'));
    });
  }

  #shown<K extends ServedKind>(object: ObjectOf<K>): ObjectOf<K> {
    this.#visible.set(object.metadata.uid, (timeoutMs) => awaitProgrammed(this.#call, object.kind, object, timeoutMs));
    return object;
  }
}

/** Finishes the pending entries of an organization's write-ahead log, after a process died or the store was unreachable. */
export async function recoverPendingWrites(services: CallContext['services'], org: string): Promise<void> {
  const record = await services.registry.get('organization', org);
  if (record !== null) await withLock({ services, caller: { organization: callerOrganization(record) } }, [], async () => {});
}

/**
 * Runs `action` under the lock of the organization. Before, pending entries of the write-ahead log are finished, and the caches of `reads` show
 * what earlier holders wrote on any replica. Throws UNAVAILABLE when the caches lag behind.
 */
function withLock<T>(call: CallContext, reads: readonly ServedKind[], action: (record: RecordWrite) => Promise<T>): Promise<T> {
  const { services, caller } = call;
  return services.organizationLock.run(caller.organization.id, async (earlier, leaveNote) => {
    const notes = new Map(earlier);
    const record: RecordWrite = (object, isDeleted = false) => {
      const text = noteOf(object, isDeleted);
      notes.set(object.kind, text);
      leaveNote(object.kind, text);
    };
    const awaitAll = async (kinds: readonly ServedKind[]): Promise<void> => {
      for (const kind of kinds) {
        const text = notes.get(kind);
        if (text !== undefined) await awaitRecordedWrite(call, kind, text);
      }
    };
    const pending = await services.writeAheadLog.pending(caller.organization.id);
    if (pending.size > 0) {
      await awaitAll(['Route']);
      await recoverPending(call, pending, record);
    }
    await awaitAll(reads);
    return action(record);
  });
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

/** The entry is written before `check` and the first write. It stays when the outcome is not known, and goes when `check` fails or a write is refused. */
async function carryOutLogged(
  call: CallContext,
  entry: LogEntry,
  record: RecordWrite,
  check = async (): Promise<void> => {},
): Promise<Route[]> {
  const { services, caller } = call;
  const org = caller.organization.id;
  const id = await services.writeAheadLog.begin(org, JSON.stringify(entry));
  const end = (): Promise<void> =>
    services.writeAheadLog.end(org, id).catch((error: unknown) => {
      services.logger.warn(
        { err: error, organization: org },
        'the log entry of a completed write was not removed; it is checked again later',
      );
    });
  await check().catch(async (error: unknown) => {
    await end();
    throw error;
  });
  try {
    const changed = await carryOut(call, entry, record);
    await end();
    return changed;
  } catch (error) {
    if (toPosthornError(error).status < 500) await end();
    throw error;
  }
}

/** Returns the routes that are enabled or disabled as in the entry. */
async function carryOut(call: CallContext, entry: LogEntry, record: RecordWrite): Promise<Route[]> {
  switch (entry.action) {
    case 'delete': {
      const { kind, objects } = entry;
      await leaveLists(call, kind, namesOf(objects), record);
      for (const { name, uid } of objects) {
        const object = { kind, metadata: { namespace: call.caller.organization.namespace, name, uid } };
        await deleteObject(call, object);
        record(object, true);
      }
      return [];
    }
    case 'enable': {
      const { enabled } = entry;
      const changed = await lastAlone(entry.objects, ({ name }) => changeRoute(call, name, (spec) => ({ ...spec, enabled }), record));
      return changed.filter((route) => route !== null);
    }
    default:
      return entry satisfies never;
  }
}

/** Takes objects out of the routes that name them. Routes that name a channel and no other send their alerts to none then. */
async function leaveLists(call: CallContext, kind: ServedKind, names: ReadonlySet<string>, record: RecordWrite): Promise<void> {
  for (const { metadata } of routesNaming(call, kind, names))
    await changeRoute(call, metadata.name, (spec) => withoutNamed(spec, kind, names) ?? spec, record);
}

/** Null: it is gone. */
async function changeRoute(
  call: CallContext,
  name: string,
  specFor: (spec: Route['spec']) => Spec,
  record: RecordWrite,
): Promise<Route | null> {
  try {
    const load = (): Promise<Route> => find(call, 'Route', name);
    const changed = await changeSpec(call, 'Route', load, async ({ spec }) => specFor(spec));
    record(changed);
    return changed;
  } catch (error) {
    if (isPosthornError(error, 'RESOURCE_NOT_FOUND')) return null;
    throw error;
  }
}

/**
 * Finishes the pending entries of the write-ahead log, object by object: a write that is now refused does not hold up the others. Throws UNAVAILABLE when
 * entries stay pending.
 */
async function recoverPending(call: CallContext, pending: ReadonlyMap<string, string>, record: RecordWrite): Promise<void> {
  const { services, caller } = call;
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
      for (const object of entry.objects) await unlessRefused(() => finish(call, { ...entry, objects: [object] }, object, record));
    });
    await services.writeAheadLog.end(org, id);
  }
}

/** Repeats the entry for one object. A newer object with the same name stays as it is. */
async function finish(call: CallContext, entry: LogEntry, { name, uid }: Named[number], record: RecordWrite): Promise<void> {
  const current = await getByName(call, entry.kind, name);
  if (current !== null && current.metadata.uid !== uid) return;
  if (current !== null && entry.action === 'delete') await refuseForeignLists(call, [current]);
  await carryOut(call, entry, record);
}

async function lastAlone<T, R>(items: readonly T[], write: (item: T, index: number) => Promise<R>): Promise<R[]> {
  const written = await mapConcurrently(items.slice(0, -1), write);
  const last = items.at(-1);
  return last === undefined ? written : [...written, await write(last, items.length - 1)];
}

function identityOf({ metadata: { name, uid } }: Written): Named[number] {
  return { name, uid };
}

function namesOf(objects: Named): ReadonlySet<string> {
  return new Set(objects.map(({ name }) => name));
}
