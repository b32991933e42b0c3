import { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import { isPosthornError } from '../../core/errors.ts';
import type { KindPath } from '../../resources/kinds.ts';
import type { ClusterEvent, ClusterKind, ClusterMetadata, ClusterObject, ClusterObjects, ClusterQuery } from '../cluster-objects.ts';
import type { Key, Version } from '../store.ts';
import { applyPatch, type KubernetesApi } from './kubernetes-api.ts';
import { defaultWatchLimits, watchPath } from './kubernetes-watch.ts';
import { collectionPath, metadataAccept, objectPath, versionOfNothing } from './wire.ts';

const pageLimit = 500;

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

/** Objects of other kinds in a Kubernetes API server. */
export class KubernetesObjects implements ClusterObjects {
  readonly #api: KubernetesApi;
  readonly #clock: Clock;

  constructor(options: { api: KubernetesApi; clock: Clock }) {
    this.#api = options.api;
    this.#clock = options.clock;
  }

  async get(kind: ClusterKind, key: Key): Promise<ClusterObject | null> {
    try {
      return objectSchema.parse(await this.#api.request('GET', objectPath(pathOf(kind), key)));
    } catch (error) {
      if (isPosthornError(error, 'RESOURCE_NOT_FOUND')) return null;
      throw error;
    }
  }

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

  async delete(kind: ClusterKind, key: Key, uid: string): Promise<void> {
    try {
      await this.#api.request('DELETE', objectPath(pathOf(kind), key), {
        body: { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background', preconditions: { uid } },
      });
    } catch (error) {
      if (!isPosthornError(error, 'RESOURCE_NOT_FOUND', 'CONFLICT')) throw error;
    }
  }

  async list(kind: ClusterKind, { namespace, ...selected }: ClusterQuery): Promise<{ items: ClusterMetadata[]; version: Version }> {
    const answer = await this.#api.request('GET', collectionPath(pathOf(kind), namespace), {
      query: { limit: pageLimit, ...selectors(selected) },
      accept: metadataAccept('PartialObjectMetadataList'),
    });
    const { metadata, items } = listSchema.parse(answer);
    return { items: (items ?? []).map((item) => item.metadata), version: metadata.resourceVersion as Version };
  }

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
