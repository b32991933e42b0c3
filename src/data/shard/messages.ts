/**
 * Messages in Redis: the interface between ingest, the delivery worker and the facade. Shards,
 * scripts and keys are this folder's own affair.
 */
import type { Abandonment, LoopTurn } from '../../core/loop-turns.ts';
import type { SentAs } from '../../core/sent-as.ts';
import type { AttemptDetail } from './attempt-detail.ts';
import type { MessageFilter, OneOrMore, PayloadFilter } from './message-filter.ts';
import type { WaitReason } from './waits.ts';

/** Further fields of an event that was sent to webhook endpoints. */
export interface WebhookEventPart {
  labels: Record<string, string>;
  metadata: Record<string, unknown>;
  idempotencyKey: string | null;
  /** Subscriptions that the sender has selected; none: every one. */
  applicationId: string | null;
  endpointIds: readonly string[];
  /** Seconds after its receipt at which the messages of the event expire, as the event and its type say. Absent: never. */
  expiresAfterSeconds?: number;
  /** The event of which this one is a part, because it has very many targets. */
  partOf?: string;
  /** How many messages it has, its parts included; absent: those that are its own. */
  total?: number;
}

export interface NewEvent {
  id: string;
  org: string;
  sourceId: string;
  sourceSlug: string;
  receivedAtMs: number;
  method: string;
  contentType: string;
  /** Query of the sender's URL, as it is forwarded, without the question mark. Absent: there is none. */
  query?: string;
  /** Sender's headers as they are forwarded, lower-case names. */
  headers: [string, string][];
  payload: Buffer;
  /** null: the source checks no signatures. */
  signatureValid: boolean | null;
  /** The event that this one repeats: it came again after the source's window for duplicates, or a replay has sent it again. */
  duplicateOf: string | null;
  /** When the first attempts are made at the earliest, in milliseconds since the epoch; the targets have it, too. Absent: at once. */
  notBeforeMs?: number;
  /** Absent: it came through a source. */
  webhook?: WebhookEventPart;
  /** One per receiving (route, destination); `subscription` is that of a webhook endpoint. */
  targets: {
    messageId: string;
    routeId: string;
    destinationId: string;
    shard: number;
    maxAttempts: number;
    /** When the first attempt is made at the earliest, in milliseconds since the epoch. Absent: at once. */
    notBeforeMs?: number;
    /** When the message is given up that was not delivered by then, in milliseconds since the epoch. Absent: never. */
    expiresAtMs?: number;
    subscription?: { id: string; transformId: string | null };
  }[];
  /** Where the walk over the candidates begins and ends that are targets besides (`webhooks/webhook-matcher.ts`). Absent: there are none. */
  further?: { from: number; end: number };
  /** The response to a duplicate; kept for so long, unless the event is removed before. Absent: none. */
  answer?: { text: string; keptMs: number };
  /**
   * One per route whose schema the event breaks: recorded as a delivery that is over. `failedFor`: the destination for whose alerts it counts, where the route
   * has any.
   */
  invalid: { messageId: string; routeId: string; brokenSchema: string; failedFor?: string }[];
  /** One per route whose filter the event did not meet: each a delivery that is over (`packed-results.ts`), and all of them one record. */
  filtered: FilteredRoute[];
}

export interface FilteredRoute {
  routeId: string;
  /** Why the filter was not evaluated in full. */
  untried?: string;
  why?: FilterFailure;
}

/** Stored reason why a filter was not met. */
export interface FilterFailure {
  /** Fingerprint of the filter that was evaluated. */
  rule?: string;
  /** `condition`: one of those that all have to be met was not; `none_met`: of those of which one has to be; `not_compiled`: nothing meets the filter. */
  reason: 'condition' | 'none_met' | 'untried' | 'not_compiled';
  /** Index of the condition that was not met. */
  condition?: number;
}

/** Filter of events; of a list of values any one is enough. */
export interface EventFilter extends PayloadFilter {
  ids?: readonly string[] | undefined;
  sourceId?: OneOrMore | undefined;
  statuses?: readonly EventStatus[] | undefined;
  /** At least one of its first 1,000 deliveries meets all of this. Absent: deliveries do not matter. */
  delivery?: Omit<DeliveryFilter, 'where'> | undefined;
  /** Whether the signature is valid; events of a source that checks none meet neither value. */
  signatureValid?: boolean | undefined;
  /** When they were received, in milliseconds since the epoch, both included. */
  fromMs?: number | undefined;
  toMs?: number | undefined;
}

/** Filter of deliveries. */
export interface DeliveryFilter extends MessageFilter, PayloadFilter {
  routeId?: OneOrMore | undefined;
  /** Where it is queued or ended, or was first. */
  destinationId?: OneOrMore | undefined;
  statuses?: readonly DeliveryStatus[] | undefined;
}

export type EventStatus = 'pending' | 'delivered' | 'partial' | 'failed' | 'filtered' | 'no_routes';

export interface EventView {
  id: string;
  org: string;
  sourceId: string;
  source: string;
  receivedAtMs: number;
  method: string;
  contentType: string;
  /** Empty: there is none. */
  query: string;
  headers: [string, string][];
  size: number;
  /** null in lists, which do not load it, and where it is above 1 MiB. */
  payload: Buffer | null;
  /** Beginning of a payload above 1 MiB, in a view of one event. */
  beginning: Buffer | null;
  signatureValid: boolean | null;
  duplicateOf: string | null;
  /** When its first attempts were to be made at the earliest; null: at once. */
  notBeforeMs: number | null;
  /** Null: it came through a source. */
  webhook: WebhookEventPart | null;
  status: EventStatus;
  /** How many deliveries it has, filtered ones and replays among them. */
  deliveryCount: number;
}

export type DeliveryStatus =
  | 'pending'
  | 'processing'
  | 'retrying'
  | 'circuit_open'
  | 'delivered'
  | 'failed'
  | 'filtered'
  | 'schema_failed'
  | 'transform_failed'
  | 'dlq';

export type DeadLetterReason =
  | 'max_retries_exceeded'
  | 'circuit_breaker_exhausted'
  | 'destination_not_found'
  | 'route_deleted'
  | 'payload_not_found'
  | 'secret_decryption_failed'
  | 'queue_limit_exceeded'
  | 'cancelled'
  | 'expired';

/** `gone`: a webhook endpoint that answered 410. */
export type AttemptErrorType = 'timeout' | 'http_error' | 'network' | 'dns' | 'tls' | 'blocked' | 'gone';

/**
 * `circuit_open`: no attempt was made yet, for an open circuit. `secret_decryption_failed`: none could be made. `disabled`: it has waited too long for a
 * disabled webhook endpoint. `cancelled`: a user has cancelled it. `expired`: the message to a webhook endpoint was not delivered by its deadline.
 */
export type DeliveryErrorType = AttemptErrorType | 'circuit_open' | 'secret_decryption_failed' | 'disabled' | 'cancelled' | 'expired';

/** Whether a message was cancelled by a user. One of which an attempt is under way ends with that. */
export interface Cancellation {
  atMs: number;
  /** Name of who did. */
  by: string;
}

export interface DeliveryView {
  id: string;
  org: string;
  eventId: string;
  routeId: string;
  destinationId: string | null;
  status: DeliveryStatus;
  attempts: number;
  maxAttempts: number;
  nextAttemptAtMs: number | null;
  /** Null: it does not wait. */
  waitingFor: WaitReason | null;
  /** Null: it does not wait, or it is unknown for how long. */
  waitingUntilMs: number | null;
  lastResponseStatus: number | null;
  lastErrorType: DeliveryErrorType | null;
  lastErrorMessage: string | null;
  /** Form of the last attempt; absent: there was none, or it was sent as is the default of its target. */
  lastSentAs?: SentAs;
  deadLetterReason: DeadLetterReason | null;
  failedOverFrom: string | null;
  /** When it came to the failover destination where it is or ended; null: it is at no such one, or on its way. */
  failedOverAtMs: number | null;
  /** The delivery that this one replays. */
  replayedFrom: string | null;
  createdAtMs: number;
  completedAtMs: number | null;
  /** When it is given up; null: it has ended, or never. */
  expiresAtMs: number | null;
  /** When it became a dead letter; null: it never was one. */
  deadSinceMs: number | null;
  /** Absent: it was not cancelled. */
  cancellation?: Cancellation;
}

/** A route whose filter an event has not met. */
export interface FilterResult {
  deliveryId: string;
  routeId: string;
  failure: FilterFailure;
  /** Why the filter was not evaluated in full; null: it was. */
  untried: string | null;
}

export interface AttemptView {
  attemptNumber: number;
  startedAtMs: number;
  durationMs: number;
  responseStatus: number | null;
  responseBody: string | null;
  errorType: AttemptErrorType | null;
  errorMessage: string | null;
  /** Absent: it is not kept. */
  detail?: AttemptDetail;
  /** Absent: as is the default of its target. */
  sentAs?: SentAs;
}

/** A failed message with its event, as it was received. */
export interface FailedSample {
  delivery: DeliveryView;
  lastAttempt: AttemptView | null;
  /** Null when it is gone. */
  event: { receivedAtMs: number; payload: Buffer; size: number } | null;
}

/** Counters of a destination since it was made. */
export interface DestinationCounters {
  /** Ended ones: delivered, dead letters, and those that failed here and went to a failover destination. */
  deliveries: number;
  successes: number;
  /** Null before the first attempt. */
  averageLatencyMs: number | null;
  /** When the last one ended after an attempt; null: none yet. */
  lastDeliveryAtMs: number | null;
}

export interface EventCounters {
  events: number;
  lastEventAtMs: number | null;
}

/** How a message has ended. */
export type MessageEnd = Pick<DeliveryView, 'status' | 'deadLetterReason'>;

export interface PageQuery {
  limit: number;
  /** Opaque; from the answer before. Forged ones throw INVALID_QUERY. */
  cursor?: string;
  /** False: a full page of a list that is walked has a cursor whether or not anything follows, and searches for nothing beyond. Absent: it has one only where something follows. */
  looksAhead?: false;
  /** Whose turns of the event loop evaluate payloads; absent: those of the organization. */
  turn?: LoopTurn;
  /** Aborted when the page is no longer needed. */
  signal?: Abandonment;
}
export interface ViewPage<T> {
  items: T[];
  nextCursor: string | null;
}
export interface ScannedPage<T> extends ViewPage<T> {
  /** Records, or index entries, that were read for the page. */
  scanned: number;
}

/**
 * Port for ingest. `accept` resolves once the event is stored as durably as Redis is set up; false: it was stored before. UNAVAILABLE otherwise. Nothing
 * reads the payload any more once it has resolved.
 */
export interface MessageAcceptor {
  accept(event: NewEvent): Promise<boolean>;
}

export interface DeadLetterStats {
  total: number;
  byReason: Partial<Record<DeadLetterReason, number>>;
  /** The destinations with the most dead letters, at most ten. */
  topDestinations: { destinationId: string; count: number }[];
}

/** How messages are replayed. */
export interface ReplayRequest {
  /** How many messages the organization may queue in a month; null or absent: any number. */
  monthlyMessages?: number | null;
  /** The same for equal requests that are to replay once for a day, whichever of them comes to it. Absent or null: no other is equal. */
  mark?: string | null;
  /** What waits for a further attempt, too. */
  alsoBetweenAttempts?: boolean;
}

/**
 * Result of the cancel of a message. `cancelled`: it is a dead letter. `cancelling`: an attempt is under way, or it is in a batch; it becomes a dead letter
 * instead of being tried again. `ended`: it had ended before. `moving`: it is on its way to another shard, or was just requeued: it may be cancelled a moment later.
 */
export type CancelResult = 'cancelled' | 'cancelling' | 'ended' | 'moving' | 'not_found';

/** Which of some ids are gone. */
export type FindDeletedIds = (ids: readonly string[]) => Promise<ReadonlySet<string>>;

/** Cleanup by the controller when configuration is deleted. Both run in bounded steps and may be called again. */
export interface MessagePurger {
  /** Removes every key of the organization: events, messages, attempts, counters, queues. Rejects once the signal aborts. */
  purgeOrganization(org: string, signal: AbortSignal): Promise<void>;
  /**
   * Removes counters of what is gone, and targets of that without messages; returns how many. `org` may be one beside the real one. Rejects once the
   * signal aborts.
   */
  removeDeletedCounters(org: string, findDeleted: FindDeletedIds, signal: AbortSignal): Promise<number>;
}
