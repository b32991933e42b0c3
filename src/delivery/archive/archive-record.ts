import { joinedHeaders } from '../../core/joined-headers.ts';
import { keptHeaders } from '../../core/kept-headers.ts';
import { payloadJson } from '../../core/payload-value.ts';
import { organizationOfWebhooks } from '../../core/webhook.ts';
import type { ArchivedMessage } from '../../data/history/message-archive.ts';
import type { AttemptView } from '../../data/shard/messages.ts';
import { webhookMessageView } from '../../data/webhooks/webhook-message-view.ts';

/** Messages of routes and those to webhook endpoints have columns of their own, and so a table of their own. */
export type ArchiveTable = 'deliveries' | 'messages';

/** A finished message as the archive has it: JSON without line breaks, the same whenever it is made. `date` is that of its end, in UTC. */
export function archiveRecord(message: ArchivedMessage): { table: ArchiveTable; date: string; json: string } {
  const { view, event } = message;
  const isWebhook = organizationOfWebhooks(view.org) !== null;
  const columns = isWebhook ? messageColumns(message) : deliveryColumns(message);
  const payload = event === null || event.chunks !== undefined ? 'null' : payloadJson(event.payload);
  return {
    table: isWebhook ? 'messages' : 'deliveries',
    date: isoTime(view.completedAtMs ?? view.createdAtMs).slice(0, 10),
    json: `${JSON.stringify({ ...columns, ...commonColumns(message) }).slice(0, -1)},"payload":${payload}}`,
  };
}

function deliveryColumns({ view, event }: ArchivedMessage) {
  return {
    id: view.id,
    eventId: view.eventId,
    source: event?.sourceSlug ?? null,
    routeId: view.routeId,
    destinationId: view.destinationId,
    status: view.status,
    deadLetterReason: view.deadLetterReason,
    failedOverFrom: view.failedOverFrom,
    lastErrorType: view.lastErrorType,
    receivedAt: event === null ? null : isoTime(event.receivedAtMs),
    method: event?.method ?? null,
    query: event?.query ?? null,
    headers: event === null ? null : joinedHeaders(keptHeaders(event.headers)),
  };
}

function messageColumns({ view, webhook, event }: ArchivedMessage) {
  const seen = webhookMessageView({ view, webhook }, event ?? undefined);
  return {
    id: seen.id,
    eventId: seen.eventId,
    eventType: seen.event?.typeName ?? null,
    applicationId: seen.applicationId,
    endpointId: seen.endpointId,
    subscriptionId: seen.subscriptionId,
    status: seen.status,
    dlqReason: seen.deadLetter?.reason ?? null,
    dlqMovedAt: seen.deadLetter === null ? null : isoTime(seen.deadLetter.movedAtMs),
    lastErrorType: seen.lastErrorType,
    labels: event?.webhook?.labels ?? {},
    metadata: event?.webhook?.metadata ?? {},
    idempotencyKey: event?.webhook?.idempotencyKey ?? null,
  };
}

function commonColumns({ view, attempts }: ArchivedMessage) {
  return {
    attempts: view.attempts,
    maxAttempts: view.maxAttempts,
    lastResponseStatus: view.lastResponseStatus,
    lastErrorMessage: view.lastErrorMessage,
    replayedFrom: view.replayedFrom,
    createdAt: isoTime(view.createdAtMs),
    completedAt: view.completedAtMs === null ? null : isoTime(view.completedAtMs),
    attemptLog: attempts.map(attemptColumns),
  };
}

/** Without the detail and the form, so that the columns are the same for every record. */
function attemptColumns({ startedAtMs, detail: _, sentAs: __, ...attempt }: AttemptView) {
  return { ...attempt, startedAt: isoTime(startedAtMs) };
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
