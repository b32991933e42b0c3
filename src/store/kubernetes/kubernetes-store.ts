import { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import { withPendingRights } from '../../core/rights-pending.ts';
import { invalidObject } from '../../resources/causes.ts';
import { isRecord } from '../../resources/field-tree.ts';
import { type Kind, kindPath, type ObjectOf, type SecretObject } from '../../resources/kinds.ts';
import { duplicateItems } from '../../resources/list-duplicates.ts';
import { mergeSchema } from '../../resources/merge-schema.ts';
import type { ObjectMeta } from '../../resources/metadata.ts';
import type {
  ApplyObject,
  ApplyOptions,
  ApplyStatusOptions,
  Key,
  ListQuery,
  Page,
  ReadableKind,
  ResourceStore,
  SecretStore,
  Version,
  WatchEvent,
} from '../store.ts';
import { AnswerTooLargeError, applyPatch, jsonPatch, type KubernetesApi } from './kubernetes-api.ts';
import { defaultWatchLimits, type WatchLimits, watchKind } from './kubernetes-watch.ts';
import { applyBody, collectionPath, metadataAccept, objectPath, toObject, versionOfNothing } from './wire.ts';

export interface KubernetesStoreOptions {
  api: KubernetesApi;
  clock: Clock;
  watchLimits?: Partial<WatchLimits>;
}

const pageLimit = 500;
/** What is read and parsed as one text. Objects may have more than a megabyte each, so that 500 of them would be more than a string can hold. */
const maxPageBytes = 8 * 1024 * 1024;
const createAttempts = 5;
const statusAttempts = 5;

const listSchema = z.object({
  metadata: z.object({ resourceVersion: z.string().min(1), continue: z.string().optional() }),
  // Go writes an empty list of metadata as null.
  items: z.array(z.unknown()).nullable(),
});

/** Resources in a Kubernetes API server. */
export class KubernetesStore implements ResourceStore, SecretStore {
  readonly #api: KubernetesApi;
  readonly #clock: Clock;
  readonly #watchLimits: WatchLimits;
  readonly #pageLimits = new Map<Kind, number>();

  constructor(options: KubernetesStoreOptions) {
    this.#api = options.api;
    this.#clock = options.clock;
    this.#watchLimits = { ...defaultWatchLimits, ...options.watchLimits };
  }

  get<K extends ReadableKind>(kind: K, key: Key): Promise<ObjectOf<K>> {
    return this.#get(kind, key);
  }

  async getMetadata(kind: Kind, key: Key): Promise<ObjectMeta> {
    const answer = await this.#request(kind, key.namespace, 'GET', collectionPath(kindPath(kind), key.namespace), {
      query: { fieldSelector: `metadata.name=${key.name}` },
      accept: metadataAccept('PartialObjectMetadataList'),
    });
    const [item] = listSchema.parse(answer).items ?? [];
    if (item === undefined) throw new PosthornError('RESOURCE_NOT_FOUND', `${kind} ${key.name} does not exist`);
    return toObject(kind, item).metadata;
  }

  getSecret(key: Key): Promise<SecretObject> {
    return this.#get('Secret', key);
  }

  async #get<K extends Kind>(kind: K, key: Key): Promise<ObjectOf<K>> {
    return toObject(kind, await this.#request(kind, key.namespace, 'GET', objectPath(kindPath(kind), key)));
  }

  async list<K extends Kind>(kind: K, query: ListQuery = {}): Promise<Page<K>> {
    const { metadata, items } = await this.#listed(kind, query);
    const page: Page<K> = { items: (items ?? []).map((item) => toObject(kind, item)), version: metadata.resourceVersion as Version };
    if (metadata.continue !== undefined && metadata.continue !== '') page.continueToken = metadata.continue;
    return page;
  }

  /** A page with as many objects as fit into one: fewer after a page of large ones, and more again with the next ones. */
  async #listed(kind: Kind, { namespace, limit: asked = pageLimit, continueToken }: ListQuery): Promise<z.infer<typeof listSchema>> {
    for (;;) {
      const known = this.#pageLimits.get(kind) ?? pageLimit;
      const limit = Math.min(asked, known);
      try {
        const answer = await this.#request(kind, namespace, 'GET', collectionPath(kindPath(kind), namespace), {
          query: { limit, continue: continueToken },
          // One object is read whatever it has.
          ...(limit > 1 && { maxBytes: maxPageBytes }),
          ...(kind === 'Secret' && { accept: metadataAccept('PartialObjectMetadataList') }),
        });
        const list = listSchema.parse(answer);
        // A page with fewer objects does not show that as many as the limit fit into one.
        if (limit === known && list.items?.length === limit) this.#pageLimits.set(kind, Math.min(pageLimit, limit + Math.ceil(limit / 4)));
        return list;
      } catch (error) {
        if (!(error instanceof AnswerTooLargeError)) throw error;
        this.#pageLimits.set(kind, Math.floor(limit / 4) || 1);
      }
    }
  }

  watch<K extends Kind>(kind: K, from: Version, signal: AbortSignal, query: { namespace?: string } = {}): AsyncIterable<WatchEvent<K>> {
    return watchKind(this.#api, this.#clock, this.#watchLimits, kind, from, signal, query.namespace);
  }

  async create<K extends Kind>(object: ApplyObject<K>, options: { manager: string }): Promise<ObjectOf<K>> {
    // A POST would make the manager's fields those of an Update, with which its own later apply conflicts.
    const body = applyBody(object, { resourceVersion: versionOfNothing });
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#patch(object.kind, object.metadata, '', body, { manager: options.manager, force: true });
      } catch (error) {
        if (!isPosthornError(error, 'CONFLICT')) throw error;
        // A concurrent change of a ResourceQuota is a conflict too: it does not concern the name.
        if (await this.#exists(object))
          throw new PosthornError('ALREADY_EXISTS', `${object.kind} ${object.metadata.name} already exists`, { cause: error });
        if (attempt === createAttempts) throw new PosthornError('UNAVAILABLE', error.message, { retryAfterSeconds: 1, cause: error });
      }
    }
  }

  async apply<K extends Kind>(object: ApplyObject<K>, options: ApplyOptions): Promise<ObjectOf<K>> {
    // With the version alone, an apply to an object that was deleted meanwhile would recreate it.
    const precondition = options.ifVersion === undefined ? {} : await this.#preconditionOf(object.kind, object.metadata, options.ifVersion);
    const applied = await this.#patch(object.kind, object.metadata, '', applyBody(object, precondition), options);
    // Not of metadata: without its last finalizer, an object that is being deleted has gone.
    if (object.spec === undefined) return applied;
    const cleared = clearedLists(object.spec, specOf(applied), '/spec');
    if (cleared.length > 0) return this.#removeEmpty(object.kind, applied, cleared, options.manager);
    if (!lacksEmptyList(object.spec, specOf(applied))) return applied;
    // The merge of the API server lets a list go along with its last item; applied to nothing, an empty list stays.
    return this.#patch(object.kind, object.metadata, '', applyBody(object, { uid: applied.metadata.uid }), options);
  }

  async applyStatus<K extends Kind>(kind: K, key: Key, status: Record<string, unknown>, options: ApplyStatusOptions): Promise<ObjectOf<K>> {
    if (options.whole !== undefined && options.ifVersion !== undefined && options.force === true) {
      return this.#putStatus(kind, key, options.whole, options.ifVersion, options.manager);
    }
    for (let attempt = 1; ; attempt++) {
      const resourceVersion =
        options.ifVersion ?? (options.ifUid === undefined ? undefined : await this.#versionWithUid(kind, key, options.ifUid));
      const body = { apiVersion: kindPath(kind).apiVersion, kind, metadata: { ...key, resourceVersion }, status };
      try {
        return await this.#patch(kind, key, '/status', body, options);
      } catch (error) {
        // Only the uid was required: another writer's change in between is no reason to refuse.
        const mayRetry = options.ifVersion === undefined && options.ifUid !== undefined && attempt < statusAttempts;
        if (!mayRetry || !isPosthornError(error, 'CONFLICT')) throw error;
      }
    }
  }

  async delete(kind: Kind, key: Key, precondition: { version?: Version; uid?: string } = {}): Promise<void> {
    await this.#request(kind, key.namespace, 'DELETE', objectPath(kindPath(kind), key), {
      body: {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        propagationPolicy: 'Background',
        preconditions: { uid: precondition.uid, resourceVersion: precondition.version },
      },
    });
  }

  /** As `KubernetesApi.request`; a missing right on Secrets is RightsPending. */
  async #request(kind: Kind, namespace: string | undefined, ...call: Parameters<KubernetesApi['request']>): Promise<unknown> {
    try {
      return await this.#api.request(...call);
    } catch (error) {
      throw kind === 'Secret' && namespace !== undefined ? withPendingRights(error, namespace) : error;
    }
  }

  /** Costs the API server about a third less than a server-side apply (hack/bench/controllers.ts). It takes only the status. */
  async #putStatus<K extends Kind>(
    kind: K,
    key: Key,
    status: Record<string, unknown>,
    resourceVersion: Version,
    manager: string,
  ): Promise<ObjectOf<K>> {
    const answer = await this.#api.request('PUT', `${objectPath(kindPath(kind), key)}/status`, {
      query: { fieldManager: manager, fieldValidation: 'Strict' },
      body: { apiVersion: kindPath(kind).apiVersion, kind, metadata: { ...key, resourceVersion }, status },
    });
    return toObject(kind, answer);
  }

  async #patch<K extends Kind>(
    kind: K,
    key: Key,
    subresource: '' | '/status',
    body: unknown,
    options: { manager: string; force?: boolean },
  ): Promise<ObjectOf<K>> {
    try {
      const answer = await this.#request(kind, key.namespace, 'PATCH', objectPath(kindPath(kind), key) + subresource, {
        query: { fieldManager: options.manager, force: options.force ?? false, fieldValidation: 'Strict' },
        contentType: applyPatch,
        body,
      });
      return toObject(kind, answer);
    } catch (error) {
      // The API server does not report which item it is.
      const repeated = isPosthornError(error, 'VALIDATION_FAILED') ? duplicateItems(body, mergeSchema(kind), []) : [];
      throw repeated.length === 0 ? error : invalidObject(kind, key.name, repeated);
    }
  }

  /** An apply does not remove unowned fields. */
  async #removeEmpty<K extends Kind>(
    kind: K,
    { metadata }: ObjectOf<K>,
    pointers: readonly string[],
    manager: string,
  ): Promise<ObjectOf<K>> {
    const { name, namespace, uid } = metadata;
    const key = namespace === undefined ? { name } : { name, namespace };
    try {
      const answer = await this.#api.request('PATCH', objectPath(kindPath(kind), key), {
        query: { fieldManager: manager, fieldValidation: 'Strict' },
        contentType: jsonPatch,
        body: [
          { op: 'test', path: '/metadata/uid', value: uid },
          ...pointers.flatMap((path) => [
            { op: 'test', path, value: [] },
            { op: 'remove', path },
          ]),
        ],
      });
      return toObject(kind, answer);
    } catch (error) {
      if (!isPosthornError(error, 'VALIDATION_FAILED')) throw error;
      throw new PosthornError('CONFLICT', `${kind} ${name} has been changed meanwhile`, { cause: error });
    }
  }

  async #exists<K extends Kind>(object: ApplyObject<K>): Promise<boolean> {
    const { kind, metadata } = object;
    try {
      // A creator of Secrets may lack the right to read them; a dry-run create reports whether there is one.
      if (kind !== 'Secret') await this.#get(kind, metadata);
      else
        await this.#api.request('POST', collectionPath(kindPath(kind), metadata.namespace), {
          query: { dryRun: 'All' },
          body: applyBody(object),
        });
      return kind !== 'Secret';
    } catch (error) {
      if (isPosthornError(error, 'ALREADY_EXISTS')) return true;
      if (isPosthornError(error, 'RESOURCE_NOT_FOUND', 'CONFLICT')) return false;
      throw error;
    }
  }

  async #preconditionOf(kind: Kind, key: Key, version: Version): Promise<{ uid: string; resourceVersion: string }> {
    try {
      const { uid, resourceVersion } = (await this.#get(kind, key)).metadata;
      if (resourceVersion === version) return { uid, resourceVersion };
    } catch (error) {
      if (!isPosthornError(error, 'RESOURCE_NOT_FOUND')) throw error;
    }
    throw new PosthornError('CONFLICT', `${kind} ${key.name} has been changed meanwhile`);
  }

  /** The API server ignores the uid in an apply to /status, but not the version. */
  async #versionWithUid(kind: Kind, key: Key, uid: string): Promise<string> {
    const { metadata } = await this.#get(kind, key);
    if (metadata.uid !== uid) throw new PosthornError('CONFLICT', `${kind} ${key.name} has been recreated meanwhile`);
    return metadata.resourceVersion;
  }
}

function specOf(object: ObjectOf<Kind>): unknown {
  return 'spec' in object ? object.spec : undefined;
}

/** Whether an empty list of `sent` is missing in `stored`. */
function lacksEmptyList(sent: unknown, stored: unknown): boolean {
  if (Array.isArray(sent)) return sent.length === 0 && stored === undefined;
  if (!isRecord(sent)) return false;
  const found = isRecord(stored) ? stored : {};
  return Object.entries(sent).some(([name, member]) => lacksEmptyList(member, found[name]));
}

/** JSON pointers, after `pointer`, to the empty lists of `stored` where `sent` has null. */
function clearedLists(sent: unknown, stored: unknown, pointer: string): string[] {
  if (sent === null) return Array.isArray(stored) && stored.length === 0 ? [pointer] : [];
  if (!isRecord(sent) || !isRecord(stored)) return [];
  return Object.entries(sent).flatMap(([name, member]) => clearedLists(member, stored[name], `${pointer}/${escaped(name)}`));
}

function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
