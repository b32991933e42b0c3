import { PosthornError } from '../../core/errors.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { kinds, type ObjectOf } from '../../resources/kinds.ts';
import type { Call } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { declaredId, idOf, inCache, resolve } from './lookup.ts';
import { nouns } from './nouns.ts';

/** Kinds that lists, exports and analytics are narrowed by. */
type FilterKind =
  | Extract<ServedKind, 'Source' | 'Route' | 'Destination' | 'WebhookEventType' | 'Replay'>
  | 'WebhookApplication'
  | 'WebhookEndpoint';

const shownAs: Readonly<Record<FilterKind, string>> = { ...nouns, WebhookApplication: 'application', WebhookEndpoint: 'endpoint' };
/** Names no index but that of an object. */
const idPattern = /^[a-z]+_[a-z0-9_]{1,64}$/;

/**
 * The id that a filter by id or slug means: of what the organization has, or had as long as there is history of it. RESOURCE_NOT_FOUND for any other, so
 * that a misspelt id does not read as an empty list, and no index of another organization is walked.
 */
export async function filterId(call: Call, kind: FilterKind, idOrSlug: string | undefined): Promise<string | undefined> {
  if (idOrSlug === undefined) return undefined;
  const id =
    kind === 'WebhookApplication' || kind === 'WebhookEndpoint'
      ? await webhookFilterId(call, kind, idOrSlug)
      : await resourceFilterId(call, kind, idOrSlug);
  if (id !== null) return id;
  const shown = idOrSlug.length > 64 ? `${idOrSlug.slice(0, 64)}…` : idOrSlug;
  throw new PosthornError('RESOURCE_NOT_FOUND', `There is no ${shownAs[kind]} "${shown}".`);
}

async function resourceFilterId(call: Call, kind: Extract<FilterKind, ServedKind>, idOrSlug: string): Promise<string | null> {
  const cached = inCache(call, kind, idOrSlug);
  if (cached !== undefined) return idOf(cached);
  if (await hasHistory(call, kind, idOrSlug)) return idOrSlug;
  // What another replica made a moment ago is not in our cache yet.
  const object = await resolve(call, kind, idOrSlug);
  return object === null ? null : idOf(object);
}

async function webhookFilterId(call: Call, kind: 'WebhookApplication' | 'WebhookEndpoint', idOrName: string): Promise<string | null> {
  const { webhooks } = call.services;
  const org = call.caller.organization.id;
  const id = await declaredId(call, kind, idOrName);
  const found = kind === 'WebhookApplication' ? await webhooks.application(org, id) : await webhooks.endpoint(org, id);
  return found !== null || (await hasHistory(call, kind, id)) ? id : null;
}

async function hasHistory(call: Call, kind: FilterKind, id: string): Promise<boolean> {
  if (!idPattern.test(id) || !id.startsWith(kinds[kind].idPrefix)) return false;
  const { id: org } = call.caller.organization;
  const isOfWebhooks = kind.startsWith('Webhook');
  const of = kind === 'Source' || kind === 'WebhookEventType' ? 'events' : 'deliveries';
  return await call.services.messages.hasHistory(isOfWebhooks ? webhookOrganization(org) : org, id, of);
}

/** The object that a filter by id or slug means; null where there is none any more, or no filter. Throws as `filterId` does. */
export async function filterObject<K extends Extract<FilterKind, ServedKind>>(
  call: Call,
  kind: K,
  idOrSlug: string | undefined,
): Promise<ObjectOf<K> | null> {
  const id = await filterId(call, kind, idOrSlug);
  return id === undefined ? null : await resolve(call, kind, id);
}
