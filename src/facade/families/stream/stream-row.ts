import { organizationOfWebhooks } from '../../../core/webhook.ts';
import type { CircuitRow, FeedRow, MessageRow, ReplayRow } from '../../../data/feed/feed-row.ts';
import { publicReason } from '../../../data/webhooks/webhook-message-view.ts';
import type { Call } from '../../http/operation.ts';
import { isoTime, nameOf } from '../../records/record-fields.ts';

export const streamTopics = ['events', 'deliveries', 'messages', 'circuits', 'replays'] as const;
export type StreamTopic = (typeof streamTopics)[number];

/** Subject of a row, under the names of the API; null: it has none. */
export interface StreamRow {
  topic: StreamTopic;
  type: string;
  at: string;
  organizationId: string;
  /** As in the lists of the topic; of a replay its phase in lower case: generated clients cannot distinguish `failed` from `Failed`. */
  status: string;
  eventId: string | null;
  /** Id of a delivery, a message or a replay. */
  id: string | null;
  sourceId: string | null;
  sourceName: string | null;
  routeId: string | null;
  routeName: string | null;
  destinationId: string | null;
  destinationName: string | null;
  applicationId: string | null;
  endpointId: string | null;
  eventType: string | null;
  attempt: number | null;
  responseStatus: number | null;
  errorType: string | null;
  reason: string | null;
  replay: ReplayProgress | null;
}

/** As in the record of the replay. */
interface ReplayProgress extends Pick<ReplayRow, 'candidates' | 'queued' | 'skipped' | 'delivered' | 'failed' | 'endedOtherwise'> {
  name: string | null;
  phase: ReplayRow['status'];
}

/** How the statuses of deliveries read as those of messages to webhook endpoints. */
const messageStatuses: Readonly<Record<MessageRow['status'], string>> = {
  delivered: 'success',
  retrying: 'failed',
  failed_over: 'failed',
  dlq: 'dlq',
  filtered: 'exhausted',
  transform_failed: 'exhausted',
  schema_failed: 'exhausted',
};
const messageKinds: Partial<Record<MessageRow['status'], string>> = { dlq: 'failed' };
const circuitKinds: Readonly<Record<CircuitRow['status'], string>> = { open: 'opened', half_open: 'half_opened', closed: 'closed' };

export const streamStatuses = [
  ...(['pending', 'failed', 'filtered', 'no_routes', 'delivered', 'retrying', 'dlq', 'transform_failed', 'schema_failed'] as const),
  ...(['success', 'exhausted', 'open', 'half_open', 'closed'] as const),
  ...(['planning', 'running', 'suspended', 'succeeded', 'cancelled'] as const),
] as const;

const nothing = {
  eventId: null,
  id: null,
  sourceId: null,
  sourceName: null,
  routeId: null,
  routeName: null,
  destinationId: null,
  destinationName: null,
  applicationId: null,
  endpointId: null,
  eventType: null,
  attempt: null,
  responseStatus: null,
  errorType: null,
  reason: null,
  replay: null,
};

export function topicOf(row: FeedRow): StreamTopic {
  if (row.kind === 'event') return 'events';
  if (row.kind === 'circuit') return 'circuits';
  if (row.kind === 'replay') return 'replays';
  return organizationOfWebhooks(row.org) === null ? 'deliveries' : 'messages';
}

export function statusOf(row: FeedRow): string {
  if (row.kind === 'replay') return row.status.toLowerCase();
  if (row.kind !== 'message') return row.status;
  if (topicOf(row) === 'messages') return messageStatuses[row.status];
  return row.status === 'failed_over' ? 'retrying' : row.status;
}

type Caller = Pick<Call, 'services' | 'caller'>;

/** Name of an event type; null where it is gone. */
export function eventTypeName({ services, caller }: Caller, id: string): string | null {
  return services.caches.WebhookEventType.getById(id, caller.organization.namespace)?.spec.name ?? null;
}

/** Subject of a row; null: it has none. */
export function idsOf(row: FeedRow): Pick<MessageRow, 'source' | 'route' | 'destination'> {
  const none = { source: null, route: null, destination: null };
  if (row.kind === 'replay') return none;
  if (row.kind === 'circuit') return { ...none, route: row.route, destination: row.destination };
  return row.kind === 'event' ? { ...none, source: row.source } : row;
}

/** Returns the row with the field names of the API and resource names from the caches. */
export function streamRow(row: FeedRow, call: Caller): StreamRow {
  const { services, caller } = call;
  const { namespace } = caller.organization;
  const isOfWebhooks = organizationOfWebhooks(row.org) !== null;
  const { source, route, destination } = idsOf(row);
  const named = (kind: 'Source' | 'Route' | 'Destination' | 'Replay', id: string | null): string | null => {
    const object = id === null ? undefined : services.caches[kind].getById(id, namespace);
    return object === undefined ? null : nameOf(object);
  };
  return {
    ...nothing,
    ...(isOfWebhooks
      ? { eventType: source === null ? null : eventTypeName(call, source), applicationId: route, endpointId: destination }
      : {
          sourceId: source,
          sourceName: named('Source', source),
          routeId: route,
          routeName: named('Route', route),
          destinationId: destination,
          destinationName: named('Destination', destination),
        }),
    topic: topicOf(row),
    type: typeOf(row),
    at: isoTime(row.atMs),
    organizationId: caller.organization.id,
    status: statusOf(row),
    ...(row.kind === 'event' && { eventId: row.eventId }),
    ...(row.kind === 'message' && {
      eventId: row.eventId,
      id: row.messageId,
      attempt: row.attempts,
      responseStatus: row.responseStatus,
      errorType: row.errorType,
      reason: isOfWebhooks ? publicReason(row.reason) : row.reason,
    }),
    ...(row.kind === 'replay' && { id: row.replayId, reason: row.reason, replay: progressOf(row, named('Replay', row.replayId)) }),
  };
}

function progressOf(row: ReplayRow, name: string | null): ReplayProgress {
  const { status: phase, candidates, queued, skipped, delivered, failed, endedOtherwise } = row;
  return { name, phase, candidates, queued, skipped, delivered, failed, endedOtherwise };
}

function typeOf(row: FeedRow): string {
  if (row.kind === 'event') return 'event.received';
  if (row.kind === 'circuit') return `circuit.${circuitKinds[row.status]}`;
  if (row.kind === 'replay') return `replay.${statusOf(row)}`;
  return `${topicOf(row) === 'messages' ? 'message' : 'delivery'}.${messageKinds[row.status] ?? row.status}`;
}
