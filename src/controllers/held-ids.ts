import { idAnnotation, requestsAnotherId, requestsForeignId, resourceId } from '../core/ids.ts';
import { isNumberedId } from '../data/webhooks/webhook-ids.ts';
import { definitionOf, kinds, type ObjectOf, type PosthornKind, type PosthornObject } from '../resources/kinds.ts';
import type { ObjectMeta } from '../resources/metadata.ts';
import { isOlder, type ResourceCache } from '../store/cache.ts';
import type { ClusterObject } from '../store/cluster-objects.ts';
import type { Key } from '../store/store.ts';
import { indexes } from './controller-caches.ts';
import type { IdOwners } from './id-owners.ts';
import type { RetainedOrganizations } from './retained-organizations.ts';

/** Finalizer of an Organization that the controllers have seen: they finalize its deletion. */
export const purgeFinalizer = 'posthorn.dev/purge';

/** Whether the object exists for good: one that is being deleted counts as gone. */
export function isLive(object: { metadata: ObjectMeta } | undefined): boolean {
  return object !== undefined && object.metadata.deletionTimestamp === undefined;
}

/** Whether the namespace is known to be deleted at this time. */
export function isEnding(namespaces: ResourceCache<'Namespace'>, name: string): boolean {
  const namespace = namespaces.get({ name });
  return namespace !== undefined && !isLive(namespace);
}

export function idOf(kind: PosthornKind, object: { metadata: Pick<ObjectMeta, 'uid' | 'annotations'> }): string {
  return resourceId(kinds[kind].idPrefix, object.metadata);
}

/** Whether ids of the kind, which has no records, are looked up within an organization. An object of another organization with the same id does not conflict. */
function isKeptByOrganization(kind: PosthornKind): boolean {
  const { recordKind, webhookKind } = definitionOf(kind);
  return recordKind === null && webhookKind === undefined;
}

/** Inputs of the owner of an id. */
export interface IdClaims {
  Organization: ResourceCache<'Organization'>;
  owners: Pick<IdOwners, 'ownerOf'>;
}

/**
 * Whether the object may act under its id. The annotation lets two objects claim one id, also in different organizations. An id that an organization
 * has published is that organization's, and the oldest of its objects has it; before that the oldest of all has it.
 */
export function holdsItsId<K extends PosthornKind>(claims: IdClaims, cache: ResourceCache<K>, object: { metadata: ObjectMeta }): boolean {
  const id = idOf(cache.kind, object);
  const owner = isKeptByOrganization(cache.kind) ? organizationIdOf(claims, object) : claims.owners.ownerOf(id);
  return entitledTo(claims, cache, id, owner)?.metadata.uid === object.metadata.uid;
}

/** The object that may act under the id, of a kind with records; undefined: there is none. */
export function holderOfId<K extends PosthornKind>(claims: IdClaims, cache: ResourceCache<K>, id: string): ObjectOf<K> | undefined {
  return entitledTo(claims, cache, id, claims.owners.ownerOf(id));
}

/** `owner`: id of the organization whose id it is; undefined: nobody's. */
function entitledTo<K extends PosthornKind>(
  claims: IdClaims,
  cache: ResourceCache<K>,
  id: string,
  owner: string | undefined,
): ObjectOf<K> | undefined {
  return oldest(cache.oldestWithId(id).filter((each) => owner === undefined || organizationIdOf(claims, each) === owner));
}

/** Whether the object is live, and neither another owner nor its annotation keeps it from its id. */
export function mayHaveItsId<K extends PosthornKind>(claims: IdClaims, cache: ResourceCache<K>, object: { metadata: ObjectMeta }): boolean {
  const { kind } = cache;
  if (requestsForeignId(kinds[kind].idPrefix, object.metadata) || requestsApiId(kind, object)) return false;
  return isLive(object) && holdsItsId(claims, cache, object);
}

/** Whether the id of the object belongs to another organization than its own. */
export function requestsOwnedId<K extends PosthornKind>(
  claims: IdClaims,
  cache: ResourceCache<K>,
  object: { metadata: ObjectMeta },
): boolean {
  const owner = claims.owners.ownerOf(idOf(cache.kind, object));
  return owner !== undefined && owner !== organizationIdOf(claims, object);
}

/** Whether its annotation requests an id in the format of the API: the organization that got this one is unknown. */
export function requestsApiId(kind: PosthornKind, { metadata }: { metadata: ObjectMeta }): boolean {
  const { webhookKind, idPrefix } = definitionOf(kind);
  if (webhookKind === undefined || !requestsAnotherId(idPrefix, metadata)) return false;
  return isNumberedId(webhookKind, resourceId(idPrefix, metadata));
}

/** Id of the organization whose namespace the object is in; undefined: of none. */
export function organizationIdOf({ Organization }: IdClaims, { metadata }: { metadata: ObjectMeta }): string | undefined {
  const organization = organizationOf(Organization, metadata.namespace ?? '');
  return organization && idOf('Organization', organization);
}

/** The object that a reference names: live, and under an id of its own. */
export function referenced<K extends PosthornKind>(claims: IdClaims, cache: ResourceCache<K>, key: Key): ObjectOf<K> | undefined {
  const object = cache.get(key);
  return object !== undefined && isLive(object) && holdsItsId(claims, cache, object) ? object : undefined;
}

/** Whether the object is of the organization with this id, be that there or retained. */
export function isOf(caches: IdClaims & { retained: RetainedOrganizations }, { metadata }: { metadata: ObjectMeta }, org: string): boolean {
  const { namespace = '' } = metadata;
  if (organizationIdOf(caches, { metadata }) === org || caches.retained.get(org)?.namespace === namespace) return true;
  return aboutToBeRetained(caches, namespace).some((organization) => idOf('Organization', organization) === org);
}

/** Whether what is in the namespace keeps its records although no organization is there: it is retained, or about to be. */
export function keepsRecords(caches: Pick<IdClaims, 'Organization'> & { retained: RetainedOrganizations }, namespace: string): boolean {
  return caches.retained.isIn(namespace) || aboutToBeRetained(caches, namespace).length > 0;
}

function aboutToBeRetained({ Organization }: Pick<IdClaims, 'Organization'>, namespace: string): PosthornObject<'Organization'>[] {
  return Organization.byIndex(indexes.namespace, namespace).filter((object) => !isLive(object) && object.spec.deletionPolicy !== 'Delete');
}

/**
 * Whether the id under which the organization acts is certain: a new one may be about to take up that of one that was deleted and retained. Until then
 * nothing is published for it.
 */
export function hasSettledId({ metadata, status }: PosthornObject<'Organization'>): boolean {
  return (
    metadata.annotations?.[idAnnotation] !== undefined || status?.id !== undefined || (metadata.finalizers ?? []).includes(purgeFinalizer)
  );
}

/** The organization of a namespace: of several that name it, the oldest. */
export function organizationOf(
  organizations: ResourceCache<'Organization'>,
  namespace: string,
): PosthornObject<'Organization'> | undefined {
  return oldest(organizations.byIndex(indexes.namespace, namespace).filter((object) => isOldestOfItsId(organizations, object)));
}

/** An organization has no owner, so age alone decides which of two has an id. */
export function isOldestOfItsId(organizations: ResourceCache<'Organization'>, object: { metadata: ObjectMeta }): boolean {
  return oldest(organizations.byIndex(indexes.id, idOf('Organization', object)))?.metadata.uid === object.metadata.uid;
}

function oldest<T extends { metadata: ObjectMeta }>(objects: readonly T[]): T | undefined {
  return objects
    .filter(isLive)
    .reduce<T | undefined>((first, object) => (first === undefined || isOlder(object, first) ? object : first), undefined);
}

/** Whether the object is its owner's by its owner reference: the name alone does not prove it. */
export function isOwned(owner: { metadata: { uid: string } }, { metadata }: ClusterObject): boolean {
  return metadata.ownerReferences?.some(({ uid, controller }) => uid === owner.metadata.uid && controller === true) === true;
}
