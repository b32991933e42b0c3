import { z } from 'zod';
import { canonicalJson } from '../../core/canonical-json.ts';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import { objectName } from '../../resources/fields.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import { type ContentOf, contentSharedWith, ownContent, type SharedFrom, type SharedKind, sharedFromOf } from '../../resources/sharing.ts';
import { maxOrganizations, type Sharing } from '../../resources/sharing-fields.ts';
import type { Call } from '../http/operation.ts';
import { findToRead } from './lookup.ts';
import { nouns } from './nouns.ts';

const slug = objectName.meta({ id: 'ObjectName', description: 'Slug.' });

const organizations = z
  .array(slug)
  .max(maxOrganizations)
  .meta({ id: 'SharedWith', description: 'Slugs of the organizations that may take it over by sharedFrom.' });

const origin = z.strictObject({
  organization: slug.describe('Slug of the organization.'),
  slug: slug.describe('Slug of its record.'),
});
const sharedFrom = origin.nullable().meta({
  id: 'SharedFrom',
  description: 'The record of another organization that provides the content; null: this one has its own.',
});

/** Fields of the record of a kind that organizations can share. */
export const shownSharing = { sharedWith: organizations, sharedFrom };

/** Fields of the body of such a kind. */
export const sentSharing = { sharedWith: organizations.optional(), sharedFrom: sharedFrom.optional() };

const shownNames = 5;

export function sharingOf({ spec }: PosthornObject<SharedKind>): z.input<z.ZodObject<typeof shownSharing>> {
  const from = sharedFromOf(spec);
  return {
    sharedWith: [...(spec.sharedWith ?? [])],
    sharedFrom: from === undefined ? null : { organization: from.organization, slug: from.name },
  };
}

/** Returns the content of the object: its own, or the shared one of another organization; undefined: that organization does not share it. */
export async function contentOf<K extends SharedKind>(
  call: Call,
  { kind, spec }: { kind: K; spec: object },
): Promise<ContentOf<K> | undefined> {
  const from = sharedFromOf(spec);
  return from === undefined ? ownContent(kind, spec) : await sharedContent(call, kind, from);
}

/** Returns the content of the record of the caller's organization with this id or slug, for a test. */
export async function findContent<K extends SharedKind>(call: Call, kind: K, idOrSlug: string): Promise<ContentOf<K>> {
  const { spec } = await findToRead(call, kind, idOrSlug);
  const content = await contentOf(call, { kind, spec });
  const from = sharedFromOf(spec);
  if (content !== undefined || from === undefined) return content as ContentOf<K>;
  throw notShared(kind, from);
}

async function sharedContent<K extends SharedKind>(call: Call, kind: K, from: SharedFrom): Promise<ContentOf<K> | undefined> {
  const { services, caller } = call;
  const namespace = await namespaceOf(call, from.organization);
  const shared = namespace === null ? undefined : services.caches[kind as SharedKind].get({ namespace, name: from.name });
  if (shared === undefined || shared.metadata.deletionTimestamp !== undefined) return undefined;
  return contentSharedWith(kind, shared.spec, caller.organization.slug);
}

/** Namespace of an organization that is there; null: there is none with this slug, or it is deleted and retained. */
async function namespaceOf({ services }: Call, slug: string): Promise<string | null> {
  const id = await services.registry.organizationIdBySlug(slug);
  const organization = id === null ? null : await services.registry.get('organization', id);
  return organization === null || organization.retained !== undefined ? null : organization.namespace;
}

/** The fields as they were sent, and those that were sent of the content, by their names in the API. */
export interface SentSharing {
  sharedWith?: string[] | undefined;
  sharedFrom?: z.output<typeof sharedFrom> | undefined;
  content: Record<string, unknown>;
  /** Content in a record. */
  shown: Record<string, unknown>;
}

/**
 * Returns the new sharing of the spec. Throws VALIDATION_FAILED if the other organization does not share the object (the message is the same if it does not have
 * it), and for content of its own beside `sharedFrom`, unless that is the shown content sent back.
 */
export async function sharingToSpec(
  call: Call,
  kind: SharedKind,
  { sharedWith: list, sharedFrom: sent, content, shown }: SentSharing,
  current: Sharing | undefined,
): Promise<Sharing> {
  const from = sent === undefined ? current?.sharedFrom : sent === null ? undefined : { organization: sent.organization, name: sent.slug };
  const wanted = list ?? current?.sharedWith;
  if (from === undefined) return { sharedWith: wanted?.length === 0 && current?.sharedWith === undefined ? undefined : wanted };
  for (const [field, value] of Object.entries(content)) {
    if (value === undefined || (current !== undefined && canonicalJson(value) === canonicalJson(shown[field]))) continue;
    throw new PosthornError('VALIDATION_FAILED', `${field} and sharedFrom are alternatives: send one of them, or sharedFrom null.`);
  }
  if (canonicalJson(from) !== canonicalJson(current?.sharedFrom ?? null) && !(await isShared(call, kind, from)))
    throw notShared(kind, from);
  return { sharedFrom: from, sharedWith: wanted?.length === 0 ? undefined : wanted };
}

/** As cached, else as stored. */
async function isShared(call: Call, kind: SharedKind, from: SharedFrom): Promise<boolean> {
  if ((await sharedContent(call, kind, from)) !== undefined) return true;
  const namespace = await namespaceOf(call, from.organization);
  if (namespace === null) return false;
  try {
    const { metadata, spec } = await call.services.store.get(kind, { namespace, name: from.name });
    return metadata.deletionTimestamp === undefined && contentSharedWith(kind, spec, call.caller.organization.slug) !== undefined;
  } catch (error) {
    if (isPosthornError(error, 'RESOURCE_NOT_FOUND')) return false;
    throw error;
  }
}

function notShared(kind: SharedKind, { organization, name }: SharedFrom): PosthornError {
  return new PosthornError(
    'VALIDATION_FAILED',
    `sharedFrom: the organization ${organization} shares no ${nouns[kind]} "${name}" with this one.`,
  );
}

/** Throws IN_USE if other organizations use the shared object, and names the first of them. */
export async function refuseTaken(object: PosthornObject<SharedKind>, call: Call): Promise<void> {
  const { kind, spec, metadata } = object;
  const { slug } = call.caller.organization;
  const isTaker = ({ spec: other }: PosthornObject<SharedKind>): boolean => {
    const from = sharedFromOf(other);
    return from?.organization === slug && from.name === metadata.name;
  };
  const takers: string[] = [];
  for (const organization of spec.sharedWith ?? []) {
    const namespace = await namespaceOf(call, organization);
    const objects: readonly PosthornObject<SharedKind>[] = namespace === null ? [] : call.services.caches[kind].list(namespace);
    if (objects.some(isTaker)) takers.push(organization);
  }
  if (takers.length === 0) return;
  const more = takers.length > shownNames ? ` and ${takers.length - shownNames} more` : '';
  throw new PosthornError('IN_USE', `The ${nouns[kind]} is used by the organizations ${takers.slice(0, shownNames).join(', ')}${more}.`);
}
