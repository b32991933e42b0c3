import { resourceId } from '../core/ids.ts';
import { kinds, type ObjectOf, type PosthornKind, type PosthornObject } from '../resources/kinds.ts';
import type { ObjectMeta } from '../resources/metadata.ts';
import type { ResourceCache } from '../store/cache.ts';
import type { ClusterObject } from '../store/cluster-objects.ts';
import type { Key } from '../store/store.ts';
import { indexes } from './controller-caches.ts';

/** Whether the object is there to stay: one that is being deleted counts as gone. */
export function isLive(object: { metadata: ObjectMeta } | undefined): boolean {
  return object !== undefined && object.metadata.deletionTimestamp === undefined;
}

export function idOf(kind: PosthornKind, object: { metadata: ObjectMeta }): string {
  return resourceId(kinds[kind].idPrefix, object.metadata);
}

/**
 * Whether the object may act under its id. The annotation lets two objects claim one id, also in different organizations;
 * the oldest has it.
 */
export function holdsItsId<K extends PosthornKind>(cache: ResourceCache<K>, object: { metadata: ObjectMeta }): boolean {
  return oldest(cache.byIndex(indexes.id, idOf(cache.kind, object)))?.metadata.uid === object.metadata.uid;
}

/** The object that a reference names: live, and under an id of its own. */
export function referenced<K extends PosthornKind>(cache: ResourceCache<K>, key: Key): ObjectOf<K> | undefined {
  const object = cache.get(key);
  return object !== undefined && isLive(object) && holdsItsId(cache, object) ? object : undefined;
}

/** The organization of a namespace: of several that name it, the oldest. */
export function organizationOf(
  organizations: ResourceCache<'Organization'>,
  namespace: string,
): PosthornObject<'Organization'> | undefined {
  return oldest(organizations.byIndex(indexes.namespace, namespace).filter((object) => holdsItsId(organizations, object)));
}

function oldest<T extends { metadata: ObjectMeta }>(objects: readonly T[]): T | undefined {
  const age = ({ metadata }: T): string => `${metadata.creationTimestamp} ${metadata.uid}`;
  return objects
    .filter(isLive)
    .reduce<T | undefined>((first, object) => (first === undefined || age(object) < age(first) ? object : first), undefined);
}

/** Whether the object is its owner's by its owner reference: what merely has the name belongs to somebody else. */
export function isOwned(owner: { metadata: { uid: string } }, { metadata }: ClusterObject): boolean {
  return metadata.ownerReferences?.some(({ uid, controller }) => uid === owner.metadata.uid && controller === true) === true;
}
