import { randomUUID } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { type Kind, kindPath, type ObjectOf, type SecretObject } from '../../resources/kinds.ts';
import type { ObjectMeta } from '../../resources/metadata.ts';
import type {
  ApplyObject,
  ApplyOptions,
  Key,
  ListQuery,
  Page,
  ReadableKind,
  ResourceStore,
  SecretStore,
  Version,
  WatchEvent,
} from '../store.ts';
import type { Mutation, ObjectBackend } from './backend.ts';
import { GarbageCollector } from './garbage-collector.ts';
import { applyMain, applyStatus, markedDeleted } from './object-write.ts';

const attempts = 20;

/** The API server's semantics (see `ResourceStore`) over a backend that can compare and set. */
export class ObjectStore implements ResourceStore, SecretStore {
  readonly #backend: ObjectBackend;
  readonly #clock: Clock;
  readonly #garbage: GarbageCollector;

  constructor(backend: ObjectBackend, clock: Clock) {
    this.#backend = backend;
    this.#clock = clock;
    this.#garbage = new GarbageCollector(backend, this);
  }

  get<K extends ReadableKind>(kind: K, key: Key): Promise<ObjectOf<K>> {
    return this.#get(kind, key);
  }

  async getMetadata(kind: Kind, key: Key): Promise<ObjectMeta> {
    return (await this.#get(kind, key)).metadata;
  }

  getSecret(key: Key): Promise<SecretObject> {
    return this.#get('Secret', key);
  }

  async #get<K extends Kind>(kind: K, key: Key): Promise<ObjectOf<K>> {
    checkKey(kind, key);
    return (await this.#backend.read(kind, key)) ?? fail(notFound(kind, key));
  }

  list<K extends Kind>(kind: K, query: ListQuery = {}): Promise<Page<K>> {
    return this.#backend.list(kind, query);
  }

  watch<K extends Kind>(kind: K, from: Version, signal: AbortSignal, query: { namespace?: string } = {}): AsyncIterable<WatchEvent<K>> {
    return this.#backend.watch(kind, from, signal, query.namespace);
  }

  async create<K extends Kind>(object: ApplyObject<K>, { manager }: { manager: string }): Promise<ObjectOf<K>> {
    const { kind, metadata: key } = object;
    checkKey(kind, key);
    const uid = randomUUID();
    const made = applyMain(kind, null, object, { manager, force: true, nowMs: this.#clock.now(), uid });
    const answer = await this.#backend.commit({ kind, key: keyOf(key), before: null, object: made, change: 'added' });
    if ('version' in answer) return this.#added(made, answer.version);
    if (answer.refused !== 'conflict') throw namespaceError(kind, key, answer.refused);
    const live = await this.#backend.read(kind, key);
    // A commit that was sent twice finds its own object.
    if (live?.metadata.uid === uid) return live;
    throw new PosthornError('ALREADY_EXISTS', `${kind} ${key.name} already exists`);
  }

  apply<K extends Kind>(object: ApplyObject<K>, options: ApplyOptions): Promise<ObjectOf<K>> {
    const { kind, metadata: key } = object;
    checkKey(kind, key);
    const uid = randomUUID();
    return this.#write(kind, key, options.ifVersion, (live) => {
      if (live === null && options.ifVersion !== undefined) throw stale(kind, key);
      return applyMain(kind, live, object, { manager: options.manager, force: options.force ?? false, nowMs: this.#clock.now(), uid });
    });
  }

  applyStatus<K extends Kind>(
    kind: K,
    key: Key,
    status: Record<string, unknown>,
    options: ApplyOptions & { ifUid?: string },
  ): Promise<ObjectOf<K>> {
    checkKey(kind, key);
    return this.#write(kind, key, options.ifVersion, (live) => {
      if (live === null) throw notFound(kind, key);
      if (options.ifUid !== undefined && live.metadata.uid !== options.ifUid) throw stale(kind, key);
      return applyStatus(kind, live, status, {
        manager: options.manager,
        force: options.force ?? false,
        nowMs: this.#clock.now(),
        uid: '',
      });
    });
  }

  async delete(kind: Kind, key: Key, precondition: { version?: Version; uid?: string } = {}): Promise<void> {
    checkKey(kind, key);
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const live = await this.#backend.read(kind, key);
      if (live === null) {
        // Gone by our own hand when the first attempt's answer was lost.
        if (attempt > 1) return;
        throw notFound(kind, key);
      }
      const { uid, resourceVersion, finalizers = [] } = live.metadata;
      if (precondition.uid !== undefined && precondition.uid !== uid) throw stale(kind, key);
      if (precondition.version !== undefined && precondition.version !== resourceVersion) throw stale(kind, key);
      const marked = markedDeleted(live, this.#clock.now());
      const stays = finalizers.length > 0 || (kind === 'Namespace' && live.metadata.deletionTimestamp === undefined);
      const isMarked = marked === live;
      if (!(stays && isMarked)) {
        const answer = await this.#commit({ kind, key, before: live, object: marked, change: stays ? 'modified' : 'deleted' });
        if (answer === 'conflict') continue;
        if (!stays) return this.#garbage.afterRemoval(marked);
      }
      if (kind === 'Namespace') await this.#garbage.emptyNamespace(key.name);
      return;
    }
    throw busy(kind, key);
  }

  /**
   * Finishes what a process that ended in the middle of it has left: objects of namespaces that are being deleted, and
   * objects whose owners are gone. Any process may call it at any time. Ends with the object at which it is when the signal
   * aborts.
   */
  sweep(signal: AbortSignal): Promise<void> {
    return this.#garbage.sweep(signal);
  }

  async #write<K extends Kind>(
    kind: K,
    key: Key,
    ifVersion: Version | undefined,
    change: (live: ObjectOf<K> | null) => ObjectOf<K>,
  ): Promise<ObjectOf<K>> {
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const live = await this.#backend.read(kind, key);
      if (live !== null && ifVersion !== undefined && live.metadata.resourceVersion !== ifVersion) throw stale(kind, key);
      const next = change(live);
      if (live !== null && next === live) return live;
      const isLast = next.metadata.deletionTimestamp !== undefined && (next.metadata.finalizers ?? []).length === 0 && kind !== 'Namespace';
      const answer = await this.#commit({
        kind,
        key: keyOf(key),
        before: live,
        object: next,
        change: isLast ? 'deleted' : live === null ? 'added' : 'modified',
      });
      if (answer === 'conflict') continue;
      if (live === null) return this.#added(next, answer);
      next.metadata.resourceVersion = answer;
      if (isLast) await this.#garbage.afterRemoval(next);
      else if (kind === 'Namespace' && next.metadata.deletionTimestamp !== undefined) await this.#garbage.emptyNamespace(key.name);
      else if (next.metadata.ownerReferences !== live.metadata.ownerReferences) await this.#garbage.collectIfOrphaned(kind, next);
      return next;
    }
    throw busy(kind, key);
  }

  async #commit(mutation: Mutation): Promise<Version | 'conflict'> {
    const answer = await this.#backend.commit(mutation);
    if ('version' in answer) return answer.version;
    if (answer.refused === 'conflict') return 'conflict';
    throw namespaceError(mutation.kind, mutation.key, answer.refused);
  }

  async #added<K extends Kind>(object: ObjectOf<K>, version: Version): Promise<ObjectOf<K>> {
    object.metadata.resourceVersion = version;
    await this.#garbage.collectIfOrphaned(object.kind as K, object);
    return object;
  }
}

function keyOf({ name, namespace }: Key): Key {
  return namespace === undefined ? { name } : { name, namespace };
}

function checkKey(kind: Kind, key: Key): void {
  const { namespaced, plural } = kindPath(kind);
  if (namespaced === (key.namespace !== undefined)) return;
  throw new PosthornError('BAD_REQUEST', `${plural} ${namespaced ? 'need a' : 'take no'} namespace`);
}

function fail(error: PosthornError): never {
  throw error;
}

function notFound(kind: Kind, key: Key): PosthornError {
  return new PosthornError('RESOURCE_NOT_FOUND', `${kind} ${key.name} does not exist`);
}

function stale(kind: Kind, key: Key): PosthornError {
  return new PosthornError('CONFLICT', `${kind} ${key.name} has been changed meanwhile`);
}

function busy(kind: Kind, key: Key): PosthornError {
  return new PosthornError('UNAVAILABLE', `${kind} ${key.name} is being changed by others all the time`, { retryAfterSeconds: 1 });
}

function namespaceError(kind: Kind, key: Key, refusal: 'namespaceMissing' | 'namespaceTerminating'): PosthornError {
  if (refusal === 'namespaceMissing')
    return new PosthornError('RESOURCE_NOT_FOUND', `namespace ${key.namespace} of ${kind} ${key.name} does not exist`);
  return new PosthornError('FORBIDDEN', `${kind} ${key.name} cannot be made: its namespace ${key.namespace} is being deleted`);
}
