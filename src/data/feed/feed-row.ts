import { organizationOfWebhooks } from '../../core/webhook.ts';
import { errorTypeByLetter } from '../shard/attempt-record.ts';
import type { AttemptErrorType } from '../shard/messages.ts';
import { recordId } from '../shard/record-key.ts';

interface Row {
  /** As messages of it are counted: of webhooks `+<organization>` (`core/webhook.ts`). */
  org: string;
  atMs: number;
}

export interface EventRow extends Row {
  kind: 'event';
  status: 'pending' | 'failed' | 'filtered' | 'no_routes';
  eventId: string;
  /** Of webhooks the event type. */
  source: string;
}

export interface MessageRow extends Row {
  kind: 'message';
  status: 'delivered' | 'retrying' | 'failed_over' | 'dlq' | 'filtered' | 'transform_failed' | 'schema_failed';
  messageId: string;
  eventId: string;
  /** Of webhooks the event type; null: the event is gone. */
  source: string | null;
  /** Of webhooks the application. */
  route: string | null;
  /** Of webhooks the endpoint; null: none. */
  destination: string | null;
  /** Attempts so far; null: no attempt has led to this. */
  attempts: number | null;
  responseStatus: number | null;
  errorType: AttemptErrorType | null;
  /** Why it is a dead letter or has failed over. */
  reason: string | null;
}

export interface CircuitRow extends Row {
  kind: 'circuit';
  status: 'open' | 'half_open' | 'closed';
  route: string;
  destination: string;
}

/** A transition, as `includes/feed.lua` writes it. */
export type FeedRow = EventRow | MessageRow | CircuitRow;

const eventStatuses: Readonly<Record<string, EventRow['status']>> = { p: 'pending', v: 'failed', f: 'filtered', n: 'no_routes' };
const messageStatuses: Readonly<Record<string, MessageRow['status']>> = {
  d: 'delivered',
  r: 'retrying',
  m: 'failed_over',
  q: 'dlq',
  f: 'filtered',
  t: 'transform_failed',
  v: 'schema_failed',
};
const circuitStates: Readonly<Record<string, CircuitRow['status']>> = { o: 'open', h: 'half_open', c: 'closed' };

/** The organization that a stored row is of; '' where it is no row. */
export function organizationOfRow(text: string): string {
  const end = text.indexOf(' ', rowStart);
  return end < 0 ? '' : text.slice(rowStart, end);
}
const rowStart = 'e p '.length;

/** Returns the real organization that alone may see rows of `org`: the rows of its webhooks are its own. */
export function ownerOfRows(org: string): string {
  return organizationOfWebhooks(org) ?? org;
}

/** Null: the first row of an epoch, or one of a later release. `id`: of its entry. */
export function parseFeedRow(shard: number, id: string, text: string): FeedRow | null {
  const [kind, letter = '', org = '', first = '', ...rest] = text.split(' ');
  const atMs = Number.parseInt(id, 10);
  if (kind === 'e') {
    const status = eventStatuses[letter];
    return status === undefined
      ? null
      : { kind: 'event', status, org, atMs, eventId: recordId('evt_', shard, first), source: rest[0] ?? '' };
  }
  if (kind === 'm') return messageRow(shard, letter, { org, atMs, first, rest });
  const status = kind === 'c' ? circuitStates[letter] : undefined;
  return status === undefined ? null : { kind: 'circuit', status, org, atMs, route: first, destination: rest[0] ?? '' };
}

function messageRow(shard: number, letter: string, { org, atMs, first, rest }: Row & { first: string; rest: string[] }): MessageRow | null {
  const status = messageStatuses[letter];
  const [event = '', source, route, destination, attempts, response, error, reason] = rest.map((text) => (text === '-' ? null : text));
  if (status === undefined) return null;
  return {
    kind: 'message',
    status,
    org,
    atMs,
    messageId: recordId('msg_', shard, first),
    eventId: recordId('evt_', shard, event ?? ''),
    source: source ?? null,
    route: route ?? null,
    destination: destination ?? null,
    attempts: attempts == null ? null : Number(attempts),
    responseStatus: response == null || response === '0' ? null : Number(response),
    errorType: errorTypeByLetter.get(error ?? '') ?? null,
    reason: reason ?? null,
  };
}
