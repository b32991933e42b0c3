import { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import { isPosthornError } from '../../core/errors.ts';
import { group } from '../../resources/definition.ts';
import { type KindPath, kindPath, type PosthornKind, posthornKinds } from '../../resources/kinds.ts';
import type { Key } from '../store.ts';
import type { KubernetesApi } from './kubernetes-api.ts';
import { collectionPath, metadataAccept, objectPath } from './wire.ts';

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const mergePatch = 'application/merge-patch+json';
const manager = 'posthorn-migrate';
const pageLimit = 500;
const tries = 5;
const retryMs = 1000;

const definitionSchema = z.object({
  metadata: z.object({ resourceVersion: z.string() }),
  spec: z.object({ versions: z.array(z.object({ name: z.string(), storage: z.boolean() })) }),
  status: z.object({ storedVersions: z.array(z.string()) }),
});

const pageSchema = z.object({
  metadata: z.object({ continue: z.string().optional() }),
  items: z.array(z.object({ metadata: z.object({ name: z.string(), namespace: z.string().optional() }) })).nullable(),
});

export interface StoredVersionsOptions {
  api: Pick<KubernetesApi, 'request'>;
  clock: Clock;
  /** Gets what cannot be stored in the version of today; its kind then keeps the other versions in its status. */
  report: (complaint: string) => void;
}

/**
 * Has the API server store the objects of each kind of which other versions than that of today may be stored in that one, and then records so in
 * `status.storedVersions` of the CustomResourceDefinition, so that a release may stop to serve the others. What is stored in the version of today
 * is not written; specs, generations and owners of fields stay. Can be stopped and repeated. Returns how many kinds that were. Throws as
 * `KubernetesApi.request` does.
 */
export async function migrateStoredVersions(options: StoredVersionsOptions): Promise<number> {
  let migrated = 0;
  for (const kind of posthornKinds) if (await migrateKind(kind, options)) migrated++;
  return migrated;
}

async function migrateKind(kind: PosthornKind, options: StoredVersionsOptions): Promise<boolean> {
  const path = kindPath(kind);
  const name = `${path.plural}.${group}`;
  const { metadata, spec, status } = definitionSchema.parse(await patiently(options, 'GET', `${definitions}/${name}`));
  const current = spec.versions.find(({ storage }) => storage)?.name;
  if (current === undefined || (status.storedVersions.length === 1 && status.storedVersions[0] === current)) return false;
  let complaints = 0;
  // All names first: a list that takes long is out of date before its last page.
  for (const key of await keysOf(path, options)) {
    try {
      // The API server writes an object that does not change when it is stored in another version.
      await patiently(options, 'PATCH', objectPath(path, key), { body: {}, contentType: mergePatch, query: { fieldManager: manager } });
    } catch (error) {
      if (isPosthornError(error, 'RESOURCE_NOT_FOUND')) continue;
      if (!isPosthornError(error, 'VALIDATION_FAILED')) throw error;
      complaints++;
      options.report(
        `${kind} ${key.namespace === undefined ? '' : `${key.namespace}/`}${key.name} cannot be stored again: ${error.message}`,
      );
    }
  }
  if (complaints > 0) return false;
  try {
    const body = { metadata: { resourceVersion: metadata.resourceVersion }, status: { storedVersions: [current] } };
    await patiently(options, 'PATCH', `${definitions}/${name}/status`, { body, contentType: mergePatch, query: { fieldManager: manager } });
  } catch (error) {
    if (!isPosthornError(error, 'CONFLICT')) throw error;
    options.report(`the CustomResourceDefinition ${name} was changed meanwhile: run this again`);
    return false;
  }
  return true;
}

async function keysOf(path: KindPath, options: StoredVersionsOptions): Promise<Key[]> {
  const keys: Key[] = [];
  let token: string | undefined;
  do {
    const page = pageSchema.parse(
      await patiently(options, 'GET', collectionPath(path, undefined), {
        query: { limit: pageLimit, continue: token },
        accept: metadataAccept('PartialObjectMetadataList'),
      }),
    );
    keys.push(...(page.items ?? []).map(({ metadata }) => metadata));
    token = page.metadata.continue === '' ? undefined : page.metadata.continue;
  } while (token !== undefined);
  return keys;
}

/** A request that is repeated while the API server is busy or down for a moment. */
async function patiently({ api, clock }: StoredVersionsOptions, ...request: Parameters<KubernetesApi['request']>): Promise<unknown> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await api.request(...request);
    } catch (error) {
      if (!isPosthornError(error, 'UNAVAILABLE') || attempt === tries) throw error;
      await clock.sleep((error.retryAfterSeconds ?? 0) * 1000 || retryMs * attempt);
    }
  }
}
