import { isPosthornError } from '../../core/errors.ts';
import { kinds, type ObjectOf } from '../../resources/kinds.ts';
import type { Call } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { type FilterKind, hasFormOfId, hasHistory } from './filter-ids.ts';
import { findToRead, idOf } from './lookup.ts';

/** Ids of what the organization had and that is deleted. */

/** Kinds of which a deleted object is distinguished from an unknown one. */
export type DeletableKind = ServedKind | 'WebhookApplication' | 'WebhookEndpoint';

const withHistory: readonly string[] = [
  'Source',
  'Route',
  'Destination',
  'WebhookEventType',
  'WebhookApplication',
  'WebhookEndpoint',
] satisfies FilterKind[];

/** Whether there may be messages of an object of the kind. */
export function mayHaveHistory(kind: DeletableKind): kind is Extract<DeletableKind, FilterKind> {
  return withHistory.includes(kind);
}

/**
 * Whether the organization had an object with this id, which the caller did not find. Record ids belong to their organization for good.
 * Deleted applications and endpoints are known for 90 days, or as long as there are messages of them. Of the other kinds without a record nothing is known.
 */
export async function wasDeleted(call: Call, kind: DeletableKind, id: string): Promise<boolean> {
  if (!hasFormOfId(kind, id)) return false;
  return (await isRecordedAsDeleted(call, kind, id)) || (mayHaveHistory(kind) && (await hasHistory(call, kind, id)));
}

async function isRecordedAsDeleted(call: Call, kind: DeletableKind, id: string): Promise<boolean> {
  const { registry } = call.services;
  const { id: org } = call.caller.organization;
  if (kind === 'WebhookApplication' || kind === 'WebhookEndpoint') return (await deletedNameOf(call, kind, id)) !== null;
  const { recordKind } = kinds[kind];
  if (recordKind === null || (await registry.ownerOf(id)) !== org) return false;
  // An object with a record exists, or is about to be retracted.
  return (await registry.getOf(org, recordKind, id)) === null;
}

/** The name of a deleted application or the URL of a deleted endpoint; null where it is not known any more. */
export async function deletedNameOf(call: Call, kind: 'WebhookApplication' | 'WebhookEndpoint', id: string): Promise<string | null> {
  const ids = kind === 'WebhookApplication' ? { applications: [id] } : { endpoints: [id] };
  return (await call.services.webhooks.deletedNames(call.caller.organization.id, ids)).get(id) ?? null;
}

/** The object with this id or slug; of a deleted one its id alone. Rejects as `findToRead` does. */
export async function findOrDeleted<K extends ServedKind>(
  call: Call,
  kind: K,
  idOrSlug: string,
): Promise<{ id: string; object: ObjectOf<K> | null }> {
  try {
    const object = await findToRead(call, kind, idOrSlug);
    return { id: idOf(object), object };
  } catch (error) {
    if (isPosthornError(error, 'RESOURCE_NOT_FOUND') && (await wasDeleted(call, kind, idOrSlug))) return { id: idOrSlug, object: null };
    throw error;
  }
}
