import { PosthornError } from '../../core/errors.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { listed, type OneOrMore } from '../../data/shard/message-filter.ts';
import { type ConfigurationKind, kinds, type ObjectOf } from '../../resources/kinds.ts';
import { eventTypeSlug } from '../../resources/names.ts';
import type { Call } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { declaredId, idOf, inCache, resolve } from './lookup.ts';
import { nouns } from './nouns.ts';

/** Kinds that lists, exports and analytics are narrowed by. */
export type FilterKind =
  | Extract<ServedKind, 'Source' | 'Route' | 'Destination' | 'WebhookEventType' | 'Replay'>
  | 'WebhookApplication'
  | 'WebhookEndpoint';

/** Nouns of the kinds in texts. */
export const shownAs: Readonly<Record<FilterKind, string>> = { ...nouns, WebhookApplication: 'application', WebhookEndpoint: 'endpoint' };
/** Names no index but that of an object. */
const idPattern = /^[a-z]+_[a-z0-9_]{1,64}$/;

/** Whether the text has the form of an id of the kind. */
export function hasFormOfId(kind: ConfigurationKind, id: string): boolean {
  return idPattern.test(id) && id.startsWith(kinds[kind].idPrefix);
}

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
  throw unknownId(shownAs[kind], idOrSlug);
}

/** `noun`: what the id would name. */
export function unknownId(noun: string, id: string): PosthornError {
  const shown = id.length > 64 ? `${id.slice(0, 64)}…` : id;
  return new PosthornError('RESOURCE_NOT_FOUND', `There is no ${noun} "${shown}".`);
}

/** The same of one or several, without repeats. */
export async function filterIds(call: Call, kind: FilterKind, sent: OneOrMore | undefined): Promise<string[] | undefined> {
  if (sent === undefined) return undefined;
  const ids = await Promise.all(listed(sent).map((each) => filterId(call, kind, each)));
  return [...new Set(ids.filter((id) => id !== undefined))];
}

async function resourceFilterId(call: Call, kind: Extract<FilterKind, ServedKind>, idOrSlug: string): Promise<string | null> {
  const cached = inCache(call, kind, idOrSlug);
  if (cached !== undefined) return idOf(cached);
  if (await hasHistory(call, kind, idOrSlug)) return idOrSlug;
  // Another replica's newest objects are not in our cache yet.
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

/** Whether the organization has messages of what has, or had, the id. */
export async function hasHistory(call: Call, kind: FilterKind, id: string): Promise<boolean> {
  if (!hasFormOfId(kind, id)) return false;
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

/**
 * Ids of the event type of this name and of deleted ones that had it; undefined: not all of them are known. RESOURCE_NOT_FOUND where the organization has none,
 * and had none as long as there is history of it.
 */
export async function eventTypeIds(call: Call, name: string): Promise<string[] | undefined> {
  const { registry, webhooks } = call.services;
  const org = call.caller.organization.id;
  const cached = inCache(call, 'WebhookEventType', eventTypeSlug(name));
  const [published, past] = await Promise.all([registry.eventTypeIdByName(org, name), webhooks.deletedEventTypeIds(org, name)]);
  const ids = new Set([cached?.spec.name === name ? idOf(cached) : null, published, ...(past ?? [])].filter((id) => id !== null));
  if (ids.size === 0) {
    // Another replica's newest objects are not in our cache yet.
    const made = await resolve(call, 'WebhookEventType', eventTypeSlug(name));
    if (made?.spec.name === name) ids.add(idOf(made));
    else if (past !== null || !(await call.services.webhookMessages.mayHaveEvents(org, name))) throw unknownId('event type', name);
  }
  return past === null ? undefined : [...ids];
}
