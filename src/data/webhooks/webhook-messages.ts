import { webhookOrganization } from '../../core/webhook.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { decodeEvent, type StoredEvent } from '../event-text.ts';
import { indexEntries, indexPage, type ListedEntry, type Listing, type TimeRange } from '../index-pages.ts';
import { attemptViews, deliveryView, eventView, type WebhookMessagePart } from '../message-view.ts';
import type { AttemptView, DeadLetterReason, DeliveryStatus, DeliveryView, EventView, PageQuery, ViewPage } from '../messages.ts';
import { homeShard, recordId, recordKey } from '../record-key.ts';
import { type IndexEntry, ShardReader } from '../shard-reader.ts';
import { type StatusCounts, webhookStatusCounts } from './webhook-status-counts.ts';

/** States of messages to webhook endpoints (API document, "States and transitions"). */
export type WebhookMessageStatus = 'pending' | 'processing' | 'success' | 'failed' | 'exhausted' | 'dlq';

export type WebhookDeadLetterReason = Exclude<DeadLetterReason, 'destination_not_found' | 'route_deleted'> | 'endpoint_not_found';

/** Times are milliseconds since the epoch. */
export interface WebhookMessageView {
  id: string;
  /** The event that users know: of a part of one the event itself. */
  eventId: string;
  /** Null when the event is gone. */
  event: { typeName: string; labels: Record<string, string> } | null;
  applicationId: string;
  endpointId: string;
  subscriptionId: string | null;
  status: WebhookMessageStatus;
  attempts: number;
  maxAttempts: number;
  nextAttemptAtMs: number | null;
  lastResponseStatus: number | null;
  lastErrorType: string | null;
  lastErrorMessage: string | null;
  replayedFrom: string | null;
  createdAtMs: number;
  completedAtMs: number | null;
  /** Null: it never was a dead letter. */
  deadLetter: { reason: WebhookDeadLetterReason; movedAtMs: number; retries: number; lastRetryAtMs: number | null } | null;
}

export interface WebhookMessageFilter extends TimeRange {
  status?: WebhookMessageStatus;
  /** Name of the event type. */
  eventType?: string;
  applicationId?: string;
  endpointId?: string;
}

export interface DeadLetterFilter extends Omit<WebhookMessageFilter, 'status'> {
  reason?: WebhookDeadLetterReason;
}

/** An event that was sent to webhook endpoints. */
export interface WebhookEventView {
  id: string;
  typeName: string;
  labels: Record<string, string>;
  metadata: Record<string, unknown>;
  idempotencyKey: string | null;
  applicationId: string | null;
  endpointIds: readonly string[];
  createdAtMs: number;
  /** How many messages it has, replays among them. */
  messageCount: number;
}

export interface WebhookEventFilter extends TimeRange {
  eventTypeId?: string;
  applicationId?: string;
}

/** Messages to webhook endpoints, and their events, as the API shows them. Throws UNAVAILABLE when Redis does not answer. */
export class WebhookMessages {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #shards: () => number;
  readonly #readers = new Map<number, ShardReader>();

  /** `shards`: how many there are. */
  constructor({ redis, prefix, shards = () => 1 }: { redis: RedisClient; prefix: string; shards?: () => number }) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#shards = shards;
  }

  async message(org: string, id: string): Promise<WebhookMessageView | null> {
    const shard = homeShard(id);
    const key = shard === null ? null : recordKey(id, shard);
    if (shard === null || key === null) return null;
    const reader = this.#in(shard);
    const [reply] = await reader.messages([key]);
    if (reply === null || reply === undefined) return null;
    const found = deliveryView(shard, key, reply);
    if (found.view.org !== webhookOrganization(org)) return null;
    return messageView(found, (await eventsOf(reader, [found.view])).get(found.view.eventId));
  }

  /** Newest first. Throws INVALID_QUERY for a forged cursor. */
  messages(org: string, filter: WebhookMessageFilter, page: PageQuery): Promise<ViewPage<WebhookMessageView>> {
    return indexPage(this.#all(), messageListing(org, filter), filter, page);
  }

  /** The same list, as long as it is; entries that do not belong to it are null. */
  everyMessage(org: string, filter: WebhookMessageFilter, cursor?: string): AsyncIterable<ListedEntry<WebhookMessageView>> {
    return indexEntries(this.#all(), messageListing(org, filter), filter, { cursor, limit: entriesAtOnce });
  }

  /** Dead letters, the last moved first; the range of time means that move. Throws INVALID_QUERY for a forged cursor. */
  deadLetters(org: string, filter: DeadLetterFilter, page: PageQuery): Promise<ViewPage<WebhookMessageView>> {
    return indexPage(this.#all(), deadLetterListing(org, filter), filter, page);
  }

  /** How many messages there are of each status. */
  counts(org: string): Promise<StatusCounts> {
    return webhookStatusCounts({ redis: this.#redis, prefix: this.#prefix, shards: this.#shards() }, org);
  }

  /** All attempts of a message that is there. */
  async attempts(id: string): Promise<AttemptView[]> {
    const shard = homeShard(id);
    const key = shard === null ? null : recordKey(id, shard);
    if (shard === null || key === null) return [];
    return attemptViews(...(await this.#in(shard).attempts(key)));
  }

  /** All events, newest first, without the parts of those with very many messages. */
  everyEvent(org: string, filter: WebhookEventFilter, cursor?: string): AsyncIterable<ListedEntry<WebhookEventView>> {
    const internal = webhookOrganization(org);
    const { eventTypeId, applicationId } = filter;
    const listing: Listing<WebhookEventView> = {
      index: eventTypeId === undefined ? `i:ev:${internal}` : `i:${eventTypeId}`,
      kind: 'e',
      scope: [internal, 'events', eventTypeId, applicationId],
      views: async ({ shard }, entries) =>
        entries.map(({ key, reply }) => {
          const view = reply === null ? null : webhookEventView(internal, eventView(shard, key, reply).view);
          return view !== null && (applicationId === undefined || view.applicationId === applicationId) ? view : null;
        }),
    };
    return indexEntries(this.#all(), listing, filter, { cursor, limit: entriesAtOnce });
  }

  #all(): ShardReader[] {
    return Array.from({ length: this.#shards() }, (_, shard) => this.#in(shard));
  }

  #in(shard: number): ShardReader {
    const known = this.#readers.get(shard) ?? new ShardReader(this.#redis, this.#prefix, shard);
    this.#readers.set(shard, known);
    return known;
  }
}

const entriesAtOnce = 1000;

/** Null for one of another organization, and for the part of an event. */
function webhookEventView(internal: string, { org, id, source, receivedAtMs, deliveryCount, webhook }: Omit<EventView, 'status'>) {
  if (org !== internal || webhook === null || webhook.partOf !== undefined) return null;
  const { total, partOf: _, ...sent } = webhook;
  return { ...sent, id, typeName: source, createdAtMs: receivedAtMs, messageCount: total ?? deliveryCount } satisfies WebhookEventView;
}

type FoundMessage = Pick<ReturnType<typeof deliveryView>, 'view' | 'webhook'>;

function messageListing(org: string, filter: WebhookMessageFilter): Listing<WebhookMessageView> {
  const internal = webhookOrganization(org);
  const { applicationId, endpointId, status, eventType } = filter;
  const narrow = endpointId ?? applicationId;
  // Dead letters have an index of their own, by the time of their end; a range of time means that of their beginning.
  const isDead = status === 'dlq' && narrow === undefined && filter.fromMs === undefined && filter.toMs === undefined;
  return {
    index: narrow !== undefined ? `i:${narrow}` : isDead ? `i:dead:${internal}` : `i:${internal}`,
    kind: 'm',
    scope: [internal, applicationId, endpointId, status, eventType],
    views: viewsOf(filter, ({ view }) => view.org === internal && (status === undefined || statusOf(view) === status)),
  };
}

function deadLetterListing(org: string, filter: DeadLetterFilter): Listing<WebhookMessageView> {
  const internal = webhookOrganization(org);
  const { applicationId, endpointId, reason, eventType } = filter;
  return {
    index: applicationId === undefined ? `i:dead:${internal}` : `i:fail:${applicationId}`,
    kind: 'm',
    scope: [internal, 'dead', applicationId, endpointId, reason, eventType],
    views: viewsOf(
      filter,
      ({ view }) => view.org === internal && view.status === 'dlq' && (reason === undefined || reasonOf(view.deadLetterReason) === reason),
    ),
  };
}

/** What becomes of the entries of an index: members that match, with what their events say. */
function viewsOf(
  { applicationId, endpointId, eventType }: WebhookMessageFilter,
  matches: (found: FoundMessage) => boolean,
): Listing<WebhookMessageView>['views'] {
  return async (shard, entries: readonly IndexEntry[]) => {
    const found = entries.map(({ key, reply }) => {
      if (reply === null) return null;
      const message = deliveryView(shard.shard, key, reply);
      const { routeId, destinationId } = message.view;
      const isNarrowed =
        (applicationId === undefined || routeId === applicationId) && (endpointId === undefined || destinationId === endpointId);
      return isNarrowed && matches(message) ? message : null;
    });
    const events = await eventsOf(
      shard,
      found.flatMap((message) => (message === null ? [] : [message.view])),
    );
    return found.map((message) => {
      const event = message === null ? undefined : events.get(message.view.eventId);
      return message === null || (eventType !== undefined && event?.sourceSlug !== eventType) ? null : messageView(message, event);
    });
  };
}

/** By id the events of messages of a shard; those that are gone are left out. */
async function eventsOf(reader: ShardReader, messages: readonly DeliveryView[]): Promise<ReadonlyMap<string, StoredEvent>> {
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

function messageView({ view, webhook }: FoundMessage, event: StoredEvent | undefined): WebhookMessageView {
  const { id, attempts, maxAttempts, nextAttemptAtMs, lastResponseStatus, lastErrorMessage, replayedFrom } = view;
  return {
    id,
    eventId: event?.webhook?.partOf ?? view.eventId,
    event: event === undefined ? null : { typeName: event.sourceSlug, labels: event.webhook?.labels ?? {} },
    applicationId: view.routeId,
    endpointId: view.destinationId ?? '',
    subscriptionId: webhook.subscriptionId,
    status: statusOf(view),
    attempts,
    maxAttempts,
    nextAttemptAtMs,
    lastResponseStatus,
    lastErrorType: unsentErrorType(view.status) ?? view.lastErrorType,
    lastErrorMessage,
    replayedFrom,
    createdAtMs: view.createdAtMs,
    completedAtMs: view.completedAtMs,
    deadLetter: deadLetterOf(view, webhook),
  };
}

function deadLetterOf(view: DeliveryView, { deadSinceMs, retries, lastRetryAtMs }: WebhookMessagePart): WebhookMessageView['deadLetter'] {
  if (view.deadLetterReason === null) return null;
  const movedAtMs = deadSinceMs ?? view.completedAtMs ?? view.createdAtMs;
  return { reason: reasonOf(view.deadLetterReason), movedAtMs, retries, lastRetryAtMs };
}

/** What waits for an open circuit has been tried, or not. */
function statusOf({ status, attempts }: DeliveryView): WebhookMessageStatus {
  switch (status) {
    case 'pending':
    case 'processing':
    case 'dlq':
      return status;
    case 'circuit_open':
      return attempts === 0 ? 'pending' : 'failed';
    case 'retrying':
      return 'failed';
    case 'delivered':
      return 'success';
    case 'failed':
    case 'filtered':
    case 'schema_failed':
    case 'transform_failed':
      return 'exhausted';
    default:
      return status satisfies never;
  }
}

/** Of a message that ended without an attempt; null of any other. */
function unsentErrorType(status: DeliveryStatus): string | null {
  return status === 'filtered' || status === 'schema_failed' || status === 'transform_failed' ? status : null;
}

/** An endpoint that is gone is one, also when it went with its application. */
export function reasonOf(reason: DeadLetterReason): WebhookDeadLetterReason;
export function reasonOf(reason: DeadLetterReason | null): WebhookDeadLetterReason | null;
export function reasonOf(reason: DeadLetterReason | null): WebhookDeadLetterReason | null {
  return reason === 'destination_not_found' || reason === 'route_deleted' ? 'endpoint_not_found' : reason;
}
