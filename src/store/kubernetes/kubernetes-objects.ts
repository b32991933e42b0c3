import { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import { isPosthornError } from '../../core/errors.ts';
import type { KindPath } from '../../resources/kinds.ts';
import type { ClusterEvent, ClusterKind, ClusterMetadata, ClusterObject, ClusterQuery } from '../cluster-objects.ts';
import type { Key, Version } from '../store.ts';
import { applyPatch, type KubernetesApi } from './kubernetes-api.ts';
import { defaultWatchLimits, watchPath } from './kubernetes-watch.ts';
import { collectionPath, metadataAccept, objectPath, versionOfNothing } from './wire.ts';

const pageLimit = 500;
/** The API server deletes one after the other. */
const deleteAllMs = 60_000;

const metadataSchema: z.ZodType<ClusterMetadata> = z.looseObject({
  name: z.string(),
  namespace: z.string().exactOptional(),
  uid: z.string(),
  resourceVersion: z.string(),
});
const objectSchema = z.looseObject({ metadata: metadataSchema });
const listSchema = z.looseObject({
  metadata: z.looseObject({ resourceVersion: z.string().min(1) }),
  items: z.array(objectSchema).nullable(),
});

/**
 * Objects of any kind in a Kubernetes API server, of which only the metadata is known. Errors are those of `ResourceStore`; a kind that the server
 * does not serve is RESOURCE_NOT_FOUND.
 */
export class KubernetesObjects {
  readonly #api: KubernetesApi;
  readonly #clock: Clock;

  constructor(options: { api: KubernetesApi; clock: Clock }) {
    this.#api = options.api;
    this.#clock = options.clock;
  }

  /** Null: there is none. */
  async get(kind: ClusterKind, key: Key): Promise<ClusterObject | null> {
    try {
      return objectSchema.parse(await this.#api.request('GET', objectPath(pathOf(kind), key)));
    } catch (error) {
      if (isPosthornError(error, 'RESOURCE_NOT_FOUND')) return null;
      throw error;
    }
  }

  /**
   * Server-side apply, forced. `uid` is that of the object that is to be changed, null when it is to be made: another one that has the name by
   * then is CONFLICT.
   */
  async apply(
    { apiVersion, kind, plural }: ClusterKind,
    object: { metadata: Key & Record<string, unknown> } & Record<string, unknown>,
    { manager, uid }: { manager: string; uid: string | null },
  ): Promise<ClusterObject> {
    const { namespace, name } = object.metadata;
    const key = namespace === undefined ? { name } : { namespace, name };
    const metadata = { ...object.metadata, ...(uid === null ? { resourceVersion: versionOfNothing } : { uid }) };
    const answer = await this.#api.request('PATCH', objectPath(pathOf({ apiVersion, kind, plural }), key), {
      query: { fieldManager: manager, force: true, fieldValidation: 'Strict' },
      contentType: applyPatch,
      body: { ...object, apiVersion, kind, metadata },
    });
    return objectSchema.parse(answer);
  }

  /** A deleted or recreated one is no error. */
  async delete(kind: ClusterKind, key: Key, uid: string): Promise<void> {
    try {
      await this.#api.request('DELETE', objectPath(pathOf(kind), key), {
        body: { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background', preconditions: { uid } },
      });
    } catch (error) {
      if (!isPosthornError(error, 'RESOURCE_NOT_FOUND', 'CONFLICT')) throw error;
    }
  }

  /** Deletes all of a namespace. */
  async deleteAll(kind: ClusterKind, namespace: string): Promise<void> {
    await this.#api.request('DELETE', collectionPath(pathOf(kind), namespace), {
      body: { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background' },
      deadlineMs: deleteAllMs,
    });
  }

  /** Their metadata, at most 500 of them. */
  async list(kind: ClusterKind, { namespace, ...selected }: ClusterQuery): Promise<{ items: ClusterMetadata[]; version: Version }> {
    const answer = await this.#api.request('GET', collectionPath(pathOf(kind), namespace), {
      query: { limit: pageLimit, ...selectors(selected) },
      accept: metadataAccept('PartialObjectMetadataList'),
    });
    const { metadata, items } = listSchema.parse(answer);
    return { items: (items ?? []).map((item) => item.metadata), version: metadata.resourceVersion as Version };
  }

  /** As `ResourceStore.watch`: begins with a bookmark once the stream is open. */
  async *watch(
    kind: ClusterKind,
    from: Version,
    signal: AbortSignal,
    { namespace, ...selected }: ClusterQuery,
  ): AsyncGenerator<ClusterEvent> {
    const watched = {
      what: kind.kind,
      path: collectionPath(pathOf(kind), namespace),
      query: selectors(selected),
      accept: metadataAccept('PartialObjectMetadata'),
      read: (object: Record<string, unknown>) => objectSchema.parse(object).metadata,
    };
    for await (const event of watchPath(this.#api, this.#clock, defaultWatchLimits, watched, from, signal)) {
      yield event.type === 'bookmark' ? event : { type: 'changed', metadata: event.object };
    }
  }
}

function selectors({ labelSelector, name }: Omit<ClusterQuery, 'namespace'>): Record<string, string> {
  return {
    ...(labelSelector !== undefined && { labelSelector }),
    ...(name !== undefined && { fieldSelector: `metadata.name=${name}` }),
  };
}

function pathOf({ apiVersion, plural }: ClusterKind): KindPath {
  return { apiVersion, root: apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`, plural, namespaced: true };
}
