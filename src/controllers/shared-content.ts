import type { Refusal } from '../compile/compiled.ts';
import type { OrganizationFacts } from '../compile/organization.ts';
import type { ObjectOf, PosthornKind } from '../resources/kinds.ts';
import {
  type ContentOf,
  contentSharedWith,
  isSharedKind,
  ownContent,
  type SharedFrom,
  type SharedKind,
  sharedFromOf,
} from '../resources/sharing.ts';
import type { CacheByKind } from '../store/reflected-caches.ts';
import { type ControllerCaches, indexes, nameIn } from './controller-caches.ts';
import { hasSettledId, organizationOf, referenced } from './held-ids.ts';

/** The content of an object, or why it has none: content of another organization does not exist or is not shared, and the two are indistinguishable. */
export type Content<K extends SharedKind> =
  | { content: ContentOf<K>; unresolved?: undefined }
  | { content?: undefined; unresolved: Refusal };

export const refNotPermitted = 'RefNotPermitted';

/** The content of an object of the organization: its own, or that of the object which it takes over with the consent of its owner. */
export function contentOf<K extends SharedKind>(
  caches: ControllerCaches,
  { kind, spec }: { kind: K; spec: object },
  { slug }: Pick<OrganizationFacts, 'slug'>,
): Content<K> {
  const from = sharedFromOf(spec);
  const content = from === undefined ? ownContent(kind, spec) : sharedContent(caches, kind, from, slug);
  if (content !== undefined) return { content };
  const { organization = '', name = '' } = from ?? {};
  return {
    unresolved: { reason: refNotPermitted, message: `the organization ${organization} shares no ${kind} ${name} with this organization` },
  };
}

/** Returns the result for content that is not valid. Own content is refused. Content of another organization leaves the object unresolved: its owner has to correct it, and the earlier record stays published. */
export function refusedContent({ kind, spec }: ObjectOf<SharedKind>, refusal: Refusal): { refusal: Refusal } | { unresolved: Refusal } {
  const from = sharedFromOf(spec);
  if (from === undefined) return { refusal };
  return {
    unresolved: {
      reason: `${kind}NotAccepted`,
      message: `${kind} ${from.name} of the organization ${from.organization}: ${refusal.message}`,
    },
  };
}

function sharedContent<K extends SharedKind>(
  caches: ControllerCaches,
  kind: K,
  { organization: owner, name }: SharedFrom,
  taker: string,
): ContentOf<K> | undefined {
  const organization = caches.Organization.get({ name: owner });
  if (organization === undefined || !hasSettledId(organization)) return undefined;
  const { namespace } = organization.spec;
  // One of several organizations that name a namespace has it.
  if (organizationOf(caches.Organization, namespace)?.metadata.uid !== organization.metadata.uid) return undefined;
  const cacheOf: CacheByKind<SharedKind> = caches;
  const shared = referenced(caches, cacheOf[kind], { namespace, name });
  return shared && contentSharedWith(kind, shared.spec, taker);
}

/** The objects of other organizations that name the object; `referred`: its `namespace/name`. */
export function takersOf(caches: ControllerCaches, kind: PosthornKind, referred: string): ObjectOf<SharedKind>[] {
  if (!isSharedKind(kind)) return [];
  const [namespace = '', name = ''] = referred.split('/');
  return caches.Organization.byIndex(indexes.namespace, namespace).flatMap(({ metadata }) =>
    takers(caches, kind, nameIn(metadata.name, name)),
  );
}

/** Objects of the kind that name an object of the organization. */
export function takersFrom(caches: ControllerCaches, kind: SharedKind, organization: string): ObjectOf<SharedKind>[] {
  return takers(caches, kind, nameIn(organization, ''));
}

function takers(caches: ControllerCaches, kind: SharedKind, value: string): ObjectOf<SharedKind>[] {
  return [...caches[kind].byIndex(indexes.sharedFrom, value)];
}
