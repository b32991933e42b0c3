import { organizationOfWebhooks } from '../../core/webhook.ts';
import { decodeAttempt } from '../shard/attempt-record.ts';
import type { Position } from '../shard/cursor.ts';
import { decodeEvent } from '../shard/event-text.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type {
  AttemptView,
  DeadLetterReason,
  DeliveryErrorType,
  DeliveryStatus,
  DeliveryView,
  EventStatus,
  EventView,
  MessageEnd,
} from '../shard/messages.ts';
import type { ChunkedPayload } from '../shard/payload-chunks.ts';
import { homeShard, recordId } from '../shard/record-key.ts';
import { bytes, fields, integer, list, text } from '../shard/script-reply.ts';
import { waitOf } from '../shard/waits.ts';

const field = hashFields.message;

/** Letters of the status in a message's hash. */
export const statuses: ReadonlyMap<string, DeliveryStatus> = new Map([
  ['p', 'pending'],
  ['a', 'processing'],
  ['r', 'retrying'],
  ['d', 'delivered'],
  ['f', 'filtered'],
  ['v', 'schema_failed'],
  ['t', 'transform_failed'],
  ['q', 'dlq'],
  // archived
  ['x', 'failed'],
  // under way to another shard
  ['m', 'pending'],
]);

/** The state letters of the messages of a status. */
export const lettersOf = {
  pending: 'p',
  processing: 'a',
  retrying: 'r',
  circuit_open: 'pr',
  delivered: 'd',
  filtered: 'f',
  schema_failed: 'v',
  transform_failed: 't',
  dlq: 'q',
  failed: 'x',
} as const satisfies Record<DeliveryStatus, string>;

export const deadLetterReasons: ReadonlySet<DeadLetterReason> = new Set([
  'max_retries_exceeded',
  'circuit_breaker_exhausted',
  'destination_not_found',
  'route_deleted',
  'payload_not_found',
  'secret_decryption_failed',
  'queue_limit_exceeded',
  'cancelled',
  'expired',
]);

/**
 * From the reply of `message_view` in `../shard/includes/view.lua`; `elsewhere` is the shard that the message has moved to, `number` that of its entries in indexes by
 * creation.
 */
export function deliveryView(
  shard: number,
  key: string,
  reply: unknown,
): { view: DeliveryView; lastAttempt: AttemptView | null; elsewhere: number | null; webhook: WebhookMessagePart; number: number } {
  const [fieldValues, org, route, destination, longAttempt, original, cooldownEnd, elsewhere, waitsFor, waitEnds] = list(reply);
  const record = fields(fieldValues);
  const number = (name: string): number => Number(record.get(name) ?? '0');
  const stored = statuses.get(record.get(field.status) ?? '') ?? 'pending';
  const waitsForCircuit = text(cooldownEnd) !== '' && (stored === 'pending' || stored === 'retrying');
  const status = waitsForCircuit ? 'circuit_open' : stored;
  const attempts = number(field.attempts);
  const last = decodeAttempt(attempts, text(longAttempt) || (record.get(String(attempts)) ?? ''));
  const wait = waitOf(text(waitsFor), text(waitEnds), organizationOfWebhooks(text(org)) !== null);
  const view: DeliveryView = {
    id: recordId('msg_', shard, key),
    org: text(org),
    eventId: recordId('evt_', shard, record.get(field.event) ?? ''),
    routeId: text(route),
    destinationId: text(destination) || null,
    status,
    attempts,
    maxAttempts: number(field.maxAttempts),
    nextAttemptAtMs:
      wait?.reason === 'scheduled'
        ? wait.untilMs
        : nextAttemptAtMs(status, record, Math.max(wait?.untilMs ?? 0, waitsForCircuit ? Number(text(cooldownEnd)) : 0)),
    waitingFor: wait?.reason ?? null,
    waitingUntilMs: wait?.untilMs ?? null,
    lastResponseStatus: last?.responseStatus ?? null,
    ...lastError(status, record, last),
    ...(last?.sentAs !== undefined && { lastSentAs: last.sentAs }),
    deadLetterReason: deadLetterReason(record.get(field.deadLetterReason)),
    failedOverFrom: text(original) || null,
    failedOverAtMs: text(original) === '' ? null : stampMs(record.get(field.moveStamp)),
    replayedFrom: record.get(field.replayOf) ?? null,
    createdAtMs: stampMs(record.get(field.indexStamp)) ?? 0,
    completedAtMs: stampMs(record.get(field.endStamp)),
    expiresAtMs: record.has(field.endStamp) || !record.has(field.expiresMs) ? null : number(field.expiresMs),
    deadSinceMs: stampMs(record.get(field.archivedEndStamp) ?? (status === 'dlq' ? record.get(field.endStamp) : undefined)),
    ...cancellation(record.get(field.cancellation)),
  };
  const [retries = '0', lastRetry = null] = record.get(field.replays)?.split(' ') ?? [];
  const webhook = {
    subscriptionId: record.get(field.subscription) ?? null,
    retries: Number(retries),
    lastRetryAtMs: lastRetry === null ? null : Number(lastRetry),
  };
  const place = Number(record.get(field.indexStamp)?.split('-')[1] ?? '0');
  return { view, lastAttempt: last, elsewhere: text(elsewhere) === '' ? null : integer(elsewhere), webhook, number: place };
}

/** How a message has ended, from its status letter and its dead-letter reason. */
export function messageEnd(letter: string, reason: string): MessageEnd {
  return { status: statuses.get(letter) ?? 'pending', deadLetterReason: deadLetterReason(reason) };
}

/** Further fields of messages to webhook endpoints. */
export interface WebhookMessagePart {
  subscriptionId: string | null;
  /** How often it was sent again as a dead letter, and when last. */
  retries: number;
  lastRetryAtMs: number | null;
}

/**
 * Not before the known end of the wait. A message to be retried always has a time: without a stored one, that of
 * its last move, or of its creation.
 */
function nextAttemptAtMs(status: DeliveryStatus, record: ReadonlyMap<string, string>, waitEndMs: number): number | null {
  const due = record.get(field.dueMs);
  if (status === 'circuit_open') return Math.max(waitEndMs, Number(due ?? '0'));
  if (status !== 'retrying') return null;
  const dueMs = due === undefined ? (stampMs(record.get(field.moveStamp) ?? record.get(field.indexStamp)) ?? 0) : Number(due);
  return Math.max(waitEndMs, dueMs);
}

/** Returns the last error. That of a dead letter for which no further attempt could be made says why, also where there were attempts before. */
function lastError(
  status: DeliveryStatus,
  record: ReadonlyMap<string, string>,
  last: AttemptView | null,
): Pick<DeliveryView, 'lastErrorType' | 'lastErrorMessage'> {
  const reason = record.get(field.deadLetterReason);
  if (reason === 'secret_decryption_failed')
    return {
      lastErrorType: reason,
      lastErrorMessage: 'a secret that the delivery needs does not open with the encryption keys that there are',
    };
  if (reason === 'cancelled') return { lastErrorType: reason, lastErrorMessage: 'the message was cancelled' };
  if (record.get(field.endErrorType) === 'disabled')
    return { lastErrorType: 'disabled', lastErrorMessage: 'the endpoint or its application was disabled for too long' };
  if (record.get(field.endErrorType) === 'expired')
    return { lastErrorType: 'expired', lastErrorMessage: 'the message was not delivered before it expired' };
  const failed = last?.errorType == null ? null : last.errorMessage;
  const end = reason === undefined ? undefined : ends.get(reason);
  return {
    lastErrorType: last === null ? errorWithoutAttempt(status, record) : last.errorType,
    lastErrorMessage:
      reason === 'expired' && failed !== null ? `${end}; before: ${failed}` : (record.get(field.unsentReason) ?? failed ?? end ?? null),
  };
}

/** In words, of dead letters that no attempt explains. */
const ends: ReadonlyMap<string, string> = new Map([
  ['expired', 'the message was not delivered before it expired'],
  ['queue_limit_exceeded', 'the queue was full, or the message waited there for too long'],
  ['circuit_breaker_exhausted', 'the circuit was open for too long'],
  ['destination_not_found', 'the destination or endpoint does not exist any more'],
  ['route_deleted', 'the route was deleted'],
  ['payload_not_found', 'the payload is no longer stored'],
]);

/** `circuit_open` of a message that an open circuit has kept from being sent: one that waits for it, failed over for it, or ended for it. */
function errorWithoutAttempt(status: DeliveryStatus, record: ReadonlyMap<string, string>): DeliveryErrorType | null {
  const hasFailedOver = record.get(field.moveReason) === 'circuit_open' && (status === 'pending' || status === 'processing');
  const hasEnded = record.get(field.deadLetterReason) === 'circuit_breaker_exhausted';
  return status === 'circuit_open' || hasFailedOver || hasEnded ? 'circuit_open' : null;
}

/** From a message's hash and the hash of its long attempts. */
export function attemptViews(short: ReadonlyMap<string, string>, long: ReadonlyMap<string, string>): AttemptView[] {
  const count = Number(short.get(field.attempts) ?? '0');
  return Array.from({ length: count }, (_, i) => {
    const stored = long.get(String(i + 1)) ?? short.get(String(i + 1));
    return stored === undefined ? null : decodeAttempt(i + 1, stored);
  }).filter((attempt) => attempt !== null);
}

/** From the reply of `event_view` or `event_head_view` in `../shard/includes/view.lua`, read as bytes. */
export function eventView(
  shard: number,
  key: string,
  reply: unknown,
): {
  view: Omit<EventView, 'status'>;
  chunks: ChunkedPayload | null;
  letters: string;
  elsewhere: (MessageLocation & { letterOfMissing: string })[];
} {
  const [stored, letters, count, size, elsewhere] = list(reply);
  const event = decodeEvent(bytes(stored));
  const view = {
    id: recordId('evt_', shard, key),
    org: event.org,
    sourceId: event.sourceId,
    source: event.sourceSlug,
    receivedAtMs: event.receivedAtMs,
    method: event.method,
    contentType: event.contentType,
    query: event.query,
    headers: event.headers,
    size: integer(size),
    payload: event.payload.length === integer(size) ? event.payload : null,
    beginning: event.chunks !== undefined && event.payload.length > 0 ? event.payload : null,
    signatureValid: event.signatureValid,
    deliveryCount: integer(count),
    duplicateOf: event.duplicateOf,
    notBeforeMs: event.notBeforeMs,
    webhook: event.webhook,
  };
  return { view, chunks: event.chunks ?? null, letters: text(letters), elsewhere: placesOf(shard, elsewhere) };
}

/** The list position of an event, from the same reply. */
export function eventPosition(shard: number, reply: unknown): Position {
  const [stored] = list(reply);
  const [, ms, number] = /^(\d+)-(\d+) /.exec(text(stored)) ?? [];
  return { ms: Number(ms ?? 0), shard, number: Number(number ?? 0) };
}

/** A message and its expected shard. */
export interface MessageLocation {
  id: string;
  shard: number;
}

/** From lists of a key, a shard or '' for the one in the id, and the letter for a message that is not found. */
function placesOf(shard: number, reply: unknown): (MessageLocation & { letterOfMissing: string })[] {
  return list(reply).map((place) => {
    const [key = '', other = '', letterOfMissing = ''] = list(place).map(text);
    const id = recordId('msg_', shard, key);
    return { id, shard: other === '' ? (homeShard(id) ?? shard) : Number(other), letterOfMissing };
  });
}

/** `letters` are the status letters of all messages of an event. */
export function eventStatus(letters: string): EventStatus {
  if (letters === '') return 'no_routes';
  if (/[parm]/.test(letters)) return 'pending';
  const delivered = letters.includes('d');
  if (/[qxvt]/.test(letters)) return delivered ? 'partial' : 'failed';
  return delivered ? 'delivered' : 'filtered';
}

function cancellation(stored: string | undefined): Pick<DeliveryView, 'cancellation'> {
  const [, ms, by] = /^(\d+) (.*)$/s.exec(stored ?? '') ?? [];
  return ms === undefined || by === undefined ? {} : { cancellation: { atMs: Number(ms), by } };
}

function stampMs(stamp: string | undefined): number | null {
  return stamp === undefined ? null : Number.parseInt(stamp, 10);
}

function deadLetterReason(value: string | undefined): DeadLetterReason | null {
  for (const reason of deadLetterReasons) if (reason === value) return reason;
  return null;
}
