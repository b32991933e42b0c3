import { isPosthornError, PosthornError } from '../../core/errors.ts';
import { resourceId } from '../../core/ids.ts';
import { type ConfigurationKind, kinds, type ObjectOf, type PosthornKind, type PosthornObject } from '../../resources/kinds.ts';
import { namesReferredTo, targetsOf } from '../../resources/references.ts';
import { allObjects } from '../../store/all-objects.ts';
import type { Call, CallContext } from '../http/operation.ts';
import type { ResourceCaches, ServedKind } from '../http/services.ts';
import { mapConcurrently } from './concurrently.ts';
import { nouns } from './nouns.ts';

const slugPattern = /^[a-z0-9](?:[-.a-z0-9]{0,98}[a-z0-9])?$/;
/** Kinds whose objects the API only shows, beside those that it makes elsewhere. */
type DeclaredKind = Exclude<ConfigurationKind, ServedKind | 'Organization'>;

const madeIdPattern = /^[a-z2-7]{26}$/;

export function idOf(object: PosthornObject<ConfigurationKind>): string {
  return resourceId(kinds[object.kind].idPrefix, object.metadata);
}

/** The object of the caller's organization with this id or slug, as the store has it now; RESOURCE_NOT_FOUND otherwise. */
export async function find<K extends ServedKind>(call: CallContext, kind: K, idOrSlug: string): Promise<ObjectOf<K>> {
  const name = await nameOf(call, kind, idOrSlug);
  const object = name === null ? null : await getByName(call, kind, name);
  if (object === null || (isId(kind, idOrSlug) && idOf(object) !== idOrSlug)) throw notFound(kind, idOrSlug);
  return object;
}

/** The same for reads: while the store is unavailable, the object as this replica saw it last. */
export async function findToRead<K extends ServedKind>(call: Call, kind: K, idOrSlug: string): Promise<ObjectOf<K>> {
  try {
    return await find(call, kind, idOrSlug);
  } catch (error) {
    const cached = isPosthornError(error, 'UNAVAILABLE') ? inCache(call, kind, idOrSlug) : undefined;
    if (cached === undefined || cached.metadata.deletionTimestamp !== undefined) throw error;
    return cached;
  }
}

/** The objects of the caller's organization that these ids and slugs name, each once, as the store has them now; unknown ones are left out. */
export async function findAll<K extends ServedKind>(call: CallContext, kind: K, idsOrSlugs: readonly string[]): Promise<ObjectOf<K>[]> {
  const { namespace } = call.caller.organization;
  const cache = call.services.caches[kind];
  const cached = idsOrSlugs.map((idOrSlug) => (isId(kind, idOrSlug) ? cache.getById(idOrSlug, namespace)?.metadata.name : idOrSlug));
  const unknown = new Set(idsOrSlugs.filter((_, index) => cached[index] === undefined));
  const stored = unknown.size === 0 ? [] : await namesInStore(call, kind, (id) => unknown.has(id));
  const names = new Set([...cached, ...stored].filter((name) => name !== undefined && slugPattern.test(name)));
  const objects = await mapConcurrently([...names], (name) => getByName(call, kind, name ?? ''));
  return objects.filter((object) => object !== null);
}

/** Target of a reference by id or slug: as cached, else as stored; null when there is nothing. */
export async function resolve<K extends ServedKind>(call: Call, kind: K, idOrSlug: string): Promise<ObjectOf<K> | null> {
  const cached = inCache(call, kind, idOrSlug);
  if (cached !== undefined) return cached;
  const name = await nameOf(call, kind, idOrSlug);
  return name === null ? null : getByName(call, kind, name);
}

export function inCache<K extends ServedKind>(call: Call, kind: K, idOrSlug: string): ObjectOf<K> | undefined {
  const { namespace } = call.caller.organization;
  const cache = call.services.caches[kind];
  return isId(kind, idOrSlug) ? cache.getById(idOrSlug, namespace) : cache.get({ namespace, name: idOrSlug });
}

/** The object that a resource refers to by name: as cached, else as stored; null when there is nothing. */
export async function byName<K extends ServedKind>(call: CallContext, kind: K, name: string): Promise<ObjectOf<K> | null> {
  const cached = call.services.caches[kind].get({ namespace: call.caller.organization.namespace, name });
  return cached ?? getByName(call, kind, name);
}

/** The id that a path means of what is made through the API or declared: itself, or that of the resource with this name. */
export async function declaredId(call: Call, kind: DeclaredKind, idOrName: string): Promise<string> {
  if (isId(kind, idOrName) || !slugPattern.test(idOrName)) return idOrName;
  const object = await getByName(call, kind, idOrName);
  return object === null ? idOrName : resourceId(kinds[kind].idPrefix, object.metadata);
}

/** All objects of the kind in the caller's organization, as cached. UNAVAILABLE before the first complete list is in. */
export function cachedObjects<K extends ServedKind>(call: CallContext, kind: K): ObjectOf<K>[] {
  return filledCache(call, kind).list(call.caller.organization.namespace);
}

/** How many those are. */
export function countCached(call: CallContext, kind: ServedKind): number {
  return filledCache(call, kind).sizeOf(call.caller.organization.namespace);
}

/** Those of the kind that refer to the object of the caller's organization, as cached: `referrerIndex`. UNAVAILABLE as for all. */
export function cachedReferrers<K extends ServedKind>(
  call: CallContext,
  kind: K,
  target: { kind: PosthornKind; metadata: { name: string } },
): ObjectOf<K>[] {
  return filledCache(call, kind).byIndex(referrers, referrerKey(target.kind, call.caller.organization.namespace, target.metadata.name));
}

const referrers = 'referrers';

/** Index of the caches, which finds the objects that refer to another one. */
export const referrerIndex = {
  [referrers]: (object: PosthornObject<ServedKind>): string[] =>
    targetsOf(object.kind).flatMap((target) =>
      namesReferredTo(object, target).map((name) => referrerKey(target, object.metadata.namespace ?? '', name)),
    ),
};

function referrerKey(kind: PosthornKind, namespace: string, name: string): string {
  return `${kind} ${namespace}/${name}`;
}

/** All of them, those first that were made last. */
export function newestFirst<K extends ServedKind>(call: Call, kind: K): readonly ObjectOf<K>[] {
  return filledCache(call, kind).newestFirst(call.caller.organization.namespace);
}

function filledCache<K extends ServedKind>(call: CallContext, kind: K): ResourceCaches[K] {
  const cache = call.services.caches[kind];
  if (!cache.isFilled) throw new PosthornError('UNAVAILABLE', 'The resources are still being read.', { retryAfterSeconds: 1 });
  return cache;
}

function notFound(kind: ServedKind, idOrSlug: string): PosthornError {
  const shown = idOrSlug.length > 64 ? `${idOrSlug.slice(0, 64)}…` : idOrSlug;
  return new PosthornError('RESOURCE_NOT_FOUND', `There is no ${nouns[kind]} "${shown}".`);
}

function isId(kind: ConfigurationKind, idOrSlug: string): boolean {
  return idOrSlug.startsWith(kinds[kind].idPrefix);
}

async function nameOf(call: CallContext, kind: ServedKind, idOrSlug: string): Promise<string | null> {
  if (!isId(kind, idOrSlug)) return slugPattern.test(idOrSlug) ? idOrSlug : null;
  const cached = call.services.caches[kind].getById(idOrSlug, call.caller.organization.namespace);
  return cached?.metadata.name ?? (await nameInStore(call, kind, idOrSlug));
}

/** Another replica's newest objects are not in our cache yet. */
async function nameInStore(call: CallContext, kind: ServedKind, id: string): Promise<string | null> {
  if (!madeIdPattern.test(id.slice(kinds[kind].idPrefix.length))) return null;
  return (await namesInStore(call, kind, (other) => other === id))[0] ?? null;
}

async function namesInStore(call: CallContext, kind: ServedKind, isWanted: (id: string) => boolean): Promise<string[]> {
  const { namespace } = call.caller.organization;
  const names: string[] = [];
  for await (const object of allObjects(call.services.store, kind, namespace)) if (isWanted(idOf(object))) names.push(object.metadata.name);
  return names;
}

/** The object as the store has it now; null when there is none, or it is being deleted. */
export async function getByName<K extends ServedKind | DeclaredKind>(
  call: CallContext,
  kind: K,
  name: string,
): Promise<ObjectOf<K> | null> {
  try {
    const object = await call.services.store.get(kind, { namespace: call.caller.organization.namespace, name });
    return object.metadata.deletionTimestamp === undefined ? object : null;
  } catch (error) {
    if (isPosthornError(error, 'RESOURCE_NOT_FOUND')) return null;
    throw error;
  }
}
