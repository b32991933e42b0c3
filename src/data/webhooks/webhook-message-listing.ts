import { webhookOrganization } from '../../core/webhook.ts';
import { joinedScope } from '../history/delivery-listing.ts';
import { attemptViews, deadLetterReasons, deliveryView, type MessageLocation } from '../history/message-view.ts';
import { decodeEvent, type StoredEvent } from '../shard/event-text.ts';
import type { Listing, TimeRange } from '../shard/index-pages.ts';
import {
  failedWithin,
  filterScope,
  filtersByFailureTime,
  isOfFailures,
  meetsFilter,
  outcomeConditions,
  readRange,
} from '../shard/message-conditions.ts';
import { isAmong, listed, type MessageFilter, type OneOrMore, type PayloadFilter } from '../shard/message-filter.ts';
import type { DeliveryView } from '../shard/messages.ts';
import { recordId, recordKey } from '../shard/record-key.ts';
import type { IndexConditions, IndexEntry, ShardReader } from '../shard/shard-reader.ts';
import {
  type FoundMessage,
  reasonOf,
  statusOf,
  type WebhookDeadLetterReason,
  type WebhookMessageStatus,
  type WebhookMessageView,
  webhookMessageView,
} from './webhook-message-view.ts';

export interface WebhookMessageFilter extends MessageFilter, PayloadFilter {
  statuses?: readonly WebhookMessageStatus[] | undefined;
  /** Names of event types. */
  eventType?: OneOrMore | undefined;
  /** Ids of the event types that have or had these names; absent: they are not known. */
  eventTypeIds?: readonly string[] | undefined;
  applicationId?: OneOrMore | undefined;
  endpointId?: OneOrMore | undefined;
}

export interface DeadLetterFilter extends Omit<WebhookMessageFilter, 'statuses'> {
  reason?: WebhookDeadLetterReason | undefined;
  /** Time range of the move to the dead letters, in milliseconds since the epoch, both ends included. */
  movedFromMs?: number | undefined;
  movedToMs?: number | undefined;
}

/**
 * Selects webhook events. Ids and times of creation are those of the events. All else but the event type speaks of messages: one of them has to meet it. `applicationId`
 * without more than that also selects events that were sent to this application alone. Of an event with more than 1,000 messages the first 1,000 are judged.
 */
export type WebhookEventFilter = WebhookMessageFilter;

/** Statuses all of whose messages stand in the index of failures, and the letters of each. */
const failedStatuses: ReadonlySet<WebhookMessageStatus> = new Set(['failed', 'exhausted', 'dlq']);
const lettersOfStatus = {
  pending: 'p',
  processing: 'a',
  success: 'd',
  failed: 'r',
  exhausted: 'xtfv',
  dlq: 'q',
} as const satisfies Record<WebhookMessageStatus, string>;

type Shown = (shard: ShardReader, messages: readonly (FoundMessage | null)[]) => Promise<(WebhookMessageView | null)[]>;

export interface MessageListing extends Listing<WebhookMessageView> {
  range: TimeRange;
  /** What the list shows of messages of a shard: those that belong to it, with what their events say. */
  shown: Shown;
  /** It is the index of dead letters, in whose order the list is. */
  isDead: boolean;
  /** Whether every member stands in the index of failures. */
  hasFailed: boolean;
}

function conditionsOf(filter: WebhookMessageFilter, statuses: string) {
  const { applicationId, endpointId, eventType } = filter;
  return {
    statuses,
    routeId: applicationId,
    destinationId: endpointId,
    eventType,
    outcome: outcomeConditions(filter),
  } satisfies IndexConditions;
}

export function messageListing(org: string, filter: WebhookMessageFilter): MessageListing {
  const internal = webhookOrganization(org);
  const { applicationId, endpointId, statuses, eventType } = filter;
  const narrow = endpointId ?? applicationId;
  const letters = statuses?.map((status) => lettersOfStatus[status]).join('') ?? '';
  // Dead letters have an index of their own, by the time of their end; a range of time means that of their beginning.
  const areDead = statuses?.every((status) => status === 'dlq') === true;
  const isDead = areDead && narrow === undefined && filter.fromMs === undefined && filter.toMs === undefined;
  const conditions = conditionsOf(filter, letters);
  const isNarrowed = narrow !== undefined || statuses !== undefined || eventType !== undefined || conditions.outcome !== null;
  return {
    index: narrow !== undefined ? listed(narrow).map((id) => `i:${id}`) : isDead ? `i:dead:${internal}` : `i:${internal}`,
    kind: 'm',
    range: isDead ? {} : readRange(filter),
    isDead,
    hasFailed: !isDead && (isOfFailures(filter) || statuses?.every((status) => failedStatuses.has(status)) === true),
    conditions: isNarrowed ? conditions : undefined,
    scope: [
      internal,
      joinedScope(applicationId),
      joinedScope(endpointId),
      statuses?.toSorted().join(','),
      joinedScope(eventType),
      ...filterScope(filter),
    ],
    ...shownBy(filter, ({ view }) => view.org === internal && (statuses === undefined || statuses.includes(statusOf(view)))),
  };
}

export function deadLetterListing(org: string, filter: DeadLetterFilter): Pick<MessageListing, 'shown'> & Listing<WebhookMessageView> {
  const internal = webhookOrganization(org);
  const { applicationId, endpointId, reason, eventType, fromMs, toMs } = filter;
  const created = fromMs === undefined && toMs === undefined ? [] : [`${fromMs}-${toMs}`];
  return {
    index: applicationId === undefined ? `i:dead:${internal}` : listed(applicationId).map((id) => `i:fail:${id}`),
    kind: 'm',
    conditions: {
      ...conditionsOf(filter, 'q'),
      reasons: reason === undefined ? undefined : [...deadLetterReasons].filter((each) => reasonOf(each) === reason),
    },
    scope: [
      internal,
      'dead',
      joinedScope(applicationId),
      joinedScope(endpointId),
      reason,
      joinedScope(eventType),
      ...created,
      ...filterScope(filter),
    ],
    ...shownBy(
      filter,
      ({ view }) => view.org === internal && view.status === 'dlq' && (reason === undefined || reasonOf(view.deadLetterReason) === reason),
    ),
  };
}

/** What a list shows of messages, and of the entries of an index. */
function shownBy(
  filter: WebhookMessageFilter,
  matches: (found: FoundMessage) => boolean,
): { shown: Shown; views: Listing<WebhookMessageView>['views'] } {
  const shown = shownOf(filter, matches);
  const views = (shard: ShardReader, entries: readonly IndexEntry[]) =>
    shown(
      shard,
      entries.map(({ key, reply }) => (reply === null ? null : deliveryView(shard.shard, key, reply))),
    );
  return { shown, views };
}

/** Returns what shows the messages of a shard that match, with what their events say; null for the others. */
function shownOf(filter: WebhookMessageFilter, matches: (found: FoundMessage) => boolean): Shown {
  const { applicationId, endpointId, eventType } = filter;
  return async (shard, messages) => {
    const found = messages.map((message) => {
      if (message === null) return null;
      const { routeId, destinationId } = message.view;
      const isNarrowed = isAmong(applicationId, routeId) && isAmong(endpointId, destinationId);
      return isNarrowed && matches(message) ? message : null;
    });
    const events = await eventsOf(
      shard,
      found.flatMap((message) => (message === null ? [] : [message.view])),
    );
    return await Promise.all(
      found.map(async (message) => {
        const event = message === null ? undefined : events.get(message.view.eventId);
        if (message === null || !isAmong(eventType, event?.sourceSlug ?? null)) return null;
        const view = webhookMessageView(message, event);
        return meetsFilter(filter, view) && (await hasFailedThen(shard, filter, view)) ? view : null;
      }),
    );
  };
}

async function hasFailedThen(shard: ShardReader, filter: WebhookMessageFilter, { id, attempts }: WebhookMessageView): Promise<boolean> {
  if (!filtersByFailureTime(filter)) return true;
  const key = recordKey(id, shard.shard);
  return attempts > 0 && key !== null && failedWithin(filter, attemptViews(...(await shard.attempts(key))));
}

/** The messages of a shard at these places; null for those that are gone. */
export async function messagesIn(
  reader: ShardReader,
  places: readonly MessageLocation[],
): Promise<(ReturnType<typeof deliveryView> | null)[]> {
  const keys = places.map(({ id }) => recordKey(id, reader.shard) ?? '');
  const replies = await reader.messages(keys);
  return keys.map((key, i) => (replies[i] == null ? null : deliveryView(reader.shard, key, replies[i])));
}

/** By id the events of messages of a shard; those that are gone are left out. */
export async function eventsOf(reader: ShardReader, messages: readonly DeliveryView[]): Promise<ReadonlyMap<string, StoredEvent>> {
  const ids = [...new Set(messages.map(({ eventId }) => eventId))];
  const keys = ids.map((id) => recordKey(id, reader.shard) ?? '');
  const heads = await reader.eventHeads(keys);
  return new Map(
    keys.flatMap((key, i) => {
      const head = heads[i];
      return head == null ? [] : [[recordId('evt_', reader.shard, key), decodeEvent(head)] as const];
    }),
  );
}
