import { isPosthornError } from '../../core/errors.ts';
import { type Kind, kindPath, type ObjectOf, posthornKinds } from '../../resources/kinds.ts';
import type { ObjectMeta, OwnerReference } from '../../resources/metadata.ts';
import type { Key, ResourceStore } from '../store.ts';
import type { ObjectBackend } from './backend.ts';

const allKinds: readonly Kind[] = [...posthornKinds, 'Secret', 'Namespace'];
const namespacedKinds = allKinds.filter((kind) => kindPath(kind).namespaced);

/**
 * Does what kube-controller-manager does: objects whose owners are all gone are deleted, and so is what is in a
 * namespace that is being deleted, and then the namespace. Each step can be repeated.
 */
export class GarbageCollector {
  readonly #backend: ObjectBackend;
  readonly #store: Pick<ResourceStore, 'delete'>;

  constructor(backend: ObjectBackend, store: Pick<ResourceStore, 'delete'>) {
    this.#backend = backend;
    this.#store = store;
  }

  /** After an object is gone: its orphans, and its namespace when it was the last in one that is being deleted. */
  async afterRemoval(object: { metadata: ObjectMeta }): Promise<void> {
    const { uid, namespace } = object.metadata;
    for (const { kind, key } of await this.#backend.dependents(uid)) {
      const dependent = await this.#backend.read(kind, key);
      if (dependent !== null) await this.collectIfOrphaned(kind, dependent);
    }
    if (namespace !== undefined) await this.#removeIfEmpty(namespace);
  }

  /** Deletes the object when it has owners and none of them exists. */
  async collectIfOrphaned(kind: Kind, object: { metadata: ObjectMeta }): Promise<void> {
    const { ownerReferences = [], name, namespace, uid } = object.metadata;
    if (ownerReferences.length === 0) return;
    for (const reference of ownerReferences) if (await this.#exists(reference, namespace)) return;
    await this.#delete(kind, namespace === undefined ? { name } : { name, namespace }, uid);
  }

  /** Deletes what is in the namespace, and the namespace once nothing is. */
  async emptyNamespace(namespace: string, signal?: AbortSignal): Promise<void> {
    for (const kind of namespacedKinds) {
      await this.#forEach(kind, { namespace, signal }, async ({ metadata }) => {
        if (metadata.deletionTimestamp === undefined) await this.#delete(kind, { name: metadata.name, namespace }, metadata.uid);
      });
    }
    if (signal?.aborted !== true) await this.#removeIfEmpty(namespace);
  }

  /** Ends with the object at which it is when the signal aborts. */
  async sweep(signal: AbortSignal): Promise<void> {
    await this.#forEach('Namespace', { signal }, async ({ metadata }) => {
      if (metadata.deletionTimestamp !== undefined) await this.emptyNamespace(metadata.name, signal);
    });
    for (const kind of allKinds) await this.#forEach(kind, { signal }, (object) => this.collectIfOrphaned(kind, object));
  }

  async #removeIfEmpty(name: string): Promise<void> {
    const namespace = await this.#backend.read('Namespace', { name });
    if (namespace?.metadata.deletionTimestamp === undefined || (namespace.metadata.finalizers ?? []).length > 0) return;
    for (const kind of namespacedKinds) if ((await this.#backend.list(kind, { namespace: name, limit: 1 })).items.length > 0) return;
    const answer = await this.#backend.commit({
      kind: 'Namespace',
      key: { name },
      before: namespace,
      object: namespace,
      change: 'deleted',
    });
    if ('version' in answer) await this.afterRemoval(namespace);
  }

  async #exists(owner: OwnerReference, namespace: string | undefined): Promise<boolean> {
    const kind = allKinds.find((each) => each === owner.kind && kindPath(each).apiVersion === owner.apiVersion);
    // Owners of kinds that are not kept here are somebody else's to watch.
    if (kind === undefined) return true;
    if (kindPath(kind).namespaced && namespace === undefined) return false;
    const key: Key = kindPath(kind).namespaced && namespace !== undefined ? { name: owner.name, namespace } : { name: owner.name };
    return (await this.#backend.read(kind, key))?.metadata.uid === owner.uid;
  }

  async #delete(kind: Kind, key: Key, uid: string): Promise<void> {
    try {
      await this.#store.delete(kind, key, { uid });
    } catch (error) {
      // Somebody else was faster, or has made another object of that name.
      if (!isPosthornError(error, 'RESOURCE_NOT_FOUND', 'CONFLICT')) throw error;
    }
  }

  async #forEach<K extends Kind>(
    kind: K,
    { signal, ...scope }: { namespace?: string; signal?: AbortSignal | undefined },
    visit: (object: ObjectOf<K>) => Promise<void>,
  ): Promise<void> {
    let continueToken: string | undefined;
    do {
      const page = await this.#backend.list(kind, { ...scope, ...(continueToken === undefined ? {} : { continueToken }) });
      for (const object of page.items) {
        if (signal?.aborted === true) return;
        await visit(object);
      }
      continueToken = page.continueToken;
    } while (continueToken !== undefined && signal?.aborted !== true);
  }
}
