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
  /** Source of the event, or event type of webhooks. */
  source: string;
}

export interface MessageRow extends Row {
  kind: 'message';
  status: 'delivered' | 'retrying' | 'failed_over' | 'dlq' | 'filtered' | 'transform_failed' | 'schema_failed';
  messageId: string;
  eventId: string;
  /** Source of the event, or event type of webhooks; null: the event is gone. */
  source: string | null;
  /** Route, or application of webhooks. */
  route: string | null;
  /** Destination, or endpoint of webhooks; null: none. */
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

export interface ReplayRow extends Row {
  kind: 'replay';
  /** Its phase. */
  status: 'Planning' | 'Running' | 'Suspended' | 'Succeeded' | 'Failed' | 'Cancelled';
  replayId: string;
  /** Candidates that the plan has found. */
  candidates: number;
  queued: number;
  skipped: number;
  delivered: number;
  failed: number;
  endedOtherwise: number;
  /** Its obstacle, or its error. */
  reason: string | null;
}

/** A transition, as `includes/feed.lua` writes it. */
export type FeedRow = EventRow | MessageRow | CircuitRow | ReplayRow;

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

const replayPhases: Readonly<Record<string, ReplayRow['status']>> = {
  p: 'Planning',
  r: 'Running',
  s: 'Suspended',
  d: 'Succeeded',
  f: 'Failed',
  c: 'Cancelled',
};
const letterByPhase = new Map(Object.entries(replayPhases).map(([letter, phase]) => [phase, letter]));

/** Arguments of `feed.replay` of `includes/feed.lua`. */
export function replayRowFields(row: Omit<ReplayRow, 'kind' | 'atMs'>): string[] {
  const { status, org, replayId, candidates, queued, skipped, delivered, failed, endedOtherwise, reason } = row;
  const counts = [candidates, queued, skipped, delivered, failed, endedOtherwise].map(String);
  return [letterByPhase.get(status) ?? '', org, replayId, ...counts, reason ?? '-'];
}

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
  if (kind === 'r') return replayRow(letter, { org, atMs, first, rest });
  const status = kind === 'c' ? circuitStates[letter] : undefined;
  return status === undefined ? null : { kind: 'circuit', status, org, atMs, route: first, destination: rest[0] ?? '' };
}

interface Rest extends Row {
  first: string;
  rest: string[];
}

function replayRow(letter: string, { org, atMs, first, rest }: Rest): ReplayRow | null {
  const status = replayPhases[letter];
  const [candidates = 0, queued = 0, skipped = 0, delivered = 0, failed = 0, endedOtherwise = 0] = rest.slice(0, 6).map(Number);
  const reason = rest[6] ?? '-';
  if (status === undefined) return null;
  const counts = { candidates, queued, skipped, delivered, failed, endedOtherwise };
  return { kind: 'replay', status, org, atMs, replayId: first, ...counts, reason: reason === '-' ? null : reason };
}

function messageRow(shard: number, letter: string, { org, atMs, first, rest }: Rest): MessageRow | null {
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
