import type { SentAs } from '../../core/sent-as.ts';
import { deadLetterReasons, type deliveryView, statuses, type WebhookMessagePart } from '../history/message-view.ts';
import type { StoredEvent } from '../shard/event-text.ts';
import type { Cancellation, DeadLetterReason, DeliveryStatus, DeliveryView, EventView } from '../shard/messages.ts';
import { type WebhookWaitReason, webhookWaitReason } from '../shard/waits.ts';

/** States of messages to webhook endpoints, as the API has them. */
export type WebhookMessageStatus = 'pending' | 'processing' | 'success' | 'failed' | 'exhausted' | 'dlq';

export type WebhookDeadLetterReason =
  | Exclude<DeadLetterReason, 'destination_not_found' | 'route_deleted' | 'cancelled' | 'expired'>
  | 'endpoint_not_found';

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
  waitingFor: WebhookWaitReason | null;
  waitingUntilMs: number | null;
  lastResponseStatus: number | null;
  lastErrorType: string | null;
  lastErrorMessage: string | null;
  /** As `DeliveryView` has it. */
  lastSentAs?: SentAs;
  replayedFrom: string | null;
  createdAtMs: number;
  completedAtMs: number | null;
  /** When it is given up; null: it has ended, or never. */
  expiresAtMs: number | null;
  /** Null: it never was a dead letter. */
  deadLetter: { reason: WebhookDeadLetterReason; movedAtMs: number; retries: number; lastRetryAtMs: number | null } | null;
  /** Absent: nobody has cancelled it. */
  cancellation?: Cancellation;
}

/** An event that was sent to webhook endpoints. */
export interface WebhookEventView {
  id: string;
  /** Id of the event type. */
  typeId: string;
  typeName: string;
  labels: Record<string, string>;
  metadata: Record<string, unknown>;
  idempotencyKey: string | null;
  applicationId: string | null;
  endpointIds: readonly string[];
  createdAtMs: number;
  /** When its first attempts were to be made at the earliest; null: at once. */
  notBeforeMs: number | null;
  /** How many messages it has, replays among them. */
  messageCount: number;
}

export type FoundMessage = Pick<ReturnType<typeof deliveryView>, 'view' | 'webhook'>;

/** `internal`: the organization for webhooks. Null for one of another organization, and for the part of an event. */
export function webhookEventView(
  internal: string,
  { org, id, source, sourceId, receivedAtMs, notBeforeMs, deliveryCount, webhook }: Omit<EventView, 'status'>,
) {
  if (org !== internal || webhook === null || webhook.partOf !== undefined) return null;
  const { total, partOf: _, ...sent } = webhook;
  return {
    ...sent,
    id,
    typeId: sourceId,
    typeName: source,
    createdAtMs: receivedAtMs,
    notBeforeMs,
    messageCount: total ?? deliveryCount,
  } satisfies WebhookEventView;
}

export function webhookMessageView(
  { view, webhook }: FoundMessage,
  event: Pick<StoredEvent, 'sourceSlug' | 'webhook'> | undefined,
): WebhookMessageView {
  const { id, attempts, maxAttempts, nextAttemptAtMs, waitingFor, waitingUntilMs, lastResponseStatus, lastErrorMessage, replayedFrom } =
    view;
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
    waitingFor: waitingFor === null ? null : webhookWaitReason(waitingFor),
    waitingUntilMs,
    lastResponseStatus,
    lastErrorType: unsentErrorType(view.status) ?? view.lastErrorType,
    lastErrorMessage,
    ...(view.lastSentAs && { lastSentAs: view.lastSentAs }),
    replayedFrom,
    createdAtMs: view.createdAtMs,
    completedAtMs: view.completedAtMs,
    expiresAtMs: view.expiresAtMs,
    deadLetter: deadLetterOf(view, webhook),
    ...(view.cancellation && { cancellation: view.cancellation }),
  };
}

function deadLetterOf(view: DeliveryView, { retries, lastRetryAtMs }: WebhookMessagePart): WebhookMessageView['deadLetter'] {
  if (view.deadLetterReason === null) return null;
  const movedAtMs = view.deadSinceMs ?? view.completedAtMs ?? view.createdAtMs;
  return { reason: reasonOf(view.deadLetterReason), movedAtMs, retries, lastRetryAtMs };
}

/** What waits for an open circuit has been tried, or not. */
export function statusOf({ status, attempts }: Pick<DeliveryView, 'status' | 'attempts'>): WebhookMessageStatus {
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

/** The same of the letter in which it stands in Redis, as far as that tells. */
export function statusOfLetter(letter: string): WebhookMessageStatus | null {
  const status = statuses.get(letter);
  return status === undefined ? null : statusOf({ status, attempts: 0 });
}

/** Returns the error type of a message that ended without an attempt; null for any other. */
function unsentErrorType(status: DeliveryStatus): string | null {
  return status === 'filtered' || status === 'schema_failed' || status === 'transform_failed' ? status : null;
}

/** An endpoint that is gone is one, also when it went with its application. What was cancelled or has expired has no reason of its own; the type of its last error says it. */
export function reasonOf(reason: DeadLetterReason): WebhookDeadLetterReason;
export function reasonOf(reason: DeadLetterReason | null): WebhookDeadLetterReason | null;
export function reasonOf(reason: DeadLetterReason | null): WebhookDeadLetterReason | null {
  if (reason === 'cancelled' || reason === 'expired') return 'max_retries_exceeded';
  return reason === 'destination_not_found' || reason === 'route_deleted' ? 'endpoint_not_found' : reason;
}

/** The same of the text in which it is stored, which a later release may know alone. */
export function publicReason(stored: string | null): string | null {
  for (const reason of deadLetterReasons) if (reason === stored) return reasonOf(reason);
  return stored;
}
