import { PosthornError } from '../../core/errors.ts';
import { parsePlainJson } from '../../core/plain-json.ts';
import { parseJson } from '../../core/read-json.ts';
import type { NewEvent, WebhookEventPart } from './messages.ts';
import type { ChunkedPayload } from './payload-chunks.ts';

/**
 * The form of an event in Redis: three lines' worth in one string. Line 1 is written by the accept script
 * (`<index stamp> <message or * or -> <org> <source> <history stamp or ->`, and ` <token>/<bytes>` where the payload is in chunks), line 2 is JSON, the rest is
 * the payload, of one in chunks nothing.
 */
export interface StoredEvent {
  org: string;
  sourceId: string;
  sourceSlug: string;
  receivedAtMs: number;
  method: string;
  contentType: string;
  /** Query of the sender's URL, without the question mark; empty: there is none. */
  query: string;
  headers: [string, string][];
  signatureValid: boolean | null;
  duplicateOf: string | null;
  /** When its first attempts are made at the earliest, in milliseconds since the epoch; null: at once. */
  notBeforeMs: number | null;
  /** Null: it came through a source. */
  webhook: WebhookEventPart | null;
  /** The payload; empty when it is in chunks, until these are read. */
  payload: Buffer;
  /** Absent: the payload is whole. */
  chunks?: ChunkedPayload;
}

interface Description {
  g: string;
  t: number;
  m: string;
  c: string;
  /** Absent: there is no query. */
  q?: string;
  h: [string, string][];
  v: boolean | null;
  /** Absent: the event repeats none. */
  d?: string;
  /** Absent: its first attempts are made at once. */
  b?: number;
  /** Absent: it came through a source. */
  w?: WebhookDescription;
}

/** Labels, metadata, idempotency key, application, endpoints, the event that it is a part of, how many messages, seconds after which they expire; each absent when there is none. */
interface WebhookDescription {
  l?: Record<string, string>;
  m?: Record<string, unknown>;
  k?: string | null;
  a?: string | null;
  e?: readonly string[];
  p?: string;
  n?: number;
  x?: number;
}

const lineFeed = Buffer.from('\n');

/** Argument of the accept script: line 2 and the payload. */
export function encodeEvent(event: NewEvent): Buffer {
  const description: Description = {
    g: event.sourceSlug,
    t: event.receivedAtMs,
    m: event.method,
    c: event.contentType,
    q: event.query === '' ? undefined : event.query,
    h: event.headers,
    v: event.signatureValid,
    d: event.duplicateOf ?? undefined,
    b: event.notBeforeMs,
    w: event.webhook === undefined ? undefined : describeWebhook(event.webhook),
  };
  return Buffer.concat([Buffer.from(JSON.stringify(description)), lineFeed, event.payload]);
}

/** Returns the organization of a stored event, or of its first line. */
export function organizationOf(stored: Buffer): string {
  const end = stored.indexOf(10);
  return stored.toString('utf8', 0, end < 0 ? stored.length : end).split(' ')[2] ?? '';
}

/** Throws INTERNAL when the text is not what `encodeEvent` and the accept script made. */
export function decodeEvent(stored: Buffer): StoredEvent {
  const first = stored.indexOf(10);
  const second = first < 0 ? -1 : stored.indexOf(10, first + 1);
  if (second < 0) throw new PosthornError('INTERNAL', 'a stored event is malformed');
  const [, , org, sourceId, , chunks] = stored.toString('utf8', 0, first).split(' ');
  const description = readDescription(stored.toString('utf8', first + 1, second));
  if (org === undefined || sourceId === undefined || !isDescription(description)) {
    throw new PosthornError('INTERNAL', 'a stored event is malformed');
  }
  return {
    org,
    sourceId,
    sourceSlug: description.g,
    receivedAtMs: description.t,
    method: description.m,
    contentType: description.c,
    query: description.q ?? '',
    headers: description.h,
    signatureValid: description.v,
    duplicateOf: description.d ?? null,
    notBeforeMs: description.b ?? null,
    webhook: description.w === undefined ? null : webhookPart(description.w),
    payload: stored.subarray(second + 1),
    ...(chunks !== undefined && { chunks: chunkedPayload(chunks) }),
  };
}

/** From `<token>/<bytes>`. */
function chunkedPayload(text: string): ChunkedPayload {
  const [token = '', bytes] = text.split('/');
  return { token, bytes: Number(bytes) };
}

/** Metadata alone has numbers of a sender: of the other events nothing is read twice. */
function readDescription(text: string): unknown {
  const description: unknown = parsePlainJson(text);
  return isDescription(description) && description.w?.m !== undefined ? parseJson(text) : description;
}

function describeWebhook({
  labels,
  metadata,
  idempotencyKey,
  applicationId,
  endpointIds,
  partOf,
  total,
  expiresAfterSeconds,
}: WebhookEventPart): WebhookDescription {
  return {
    ...(Object.keys(labels).length > 0 && { l: labels }),
    ...(Object.keys(metadata).length > 0 && { m: metadata }),
    ...(idempotencyKey !== null && { k: idempotencyKey }),
    ...(applicationId !== null && { a: applicationId }),
    ...(endpointIds.length > 0 && { e: endpointIds }),
    ...(partOf !== undefined && { p: partOf }),
    ...(total !== undefined && { n: total }),
    ...(expiresAfterSeconds !== undefined && { x: expiresAfterSeconds }),
  };
}

function webhookPart({ l = {}, m = {}, k = null, a = null, e = [], p, n, x }: WebhookDescription): WebhookEventPart {
  return {
    labels: l,
    metadata: m,
    idempotencyKey: k,
    applicationId: a,
    endpointIds: e,
    ...(n !== undefined && { total: n }),
    ...(x !== undefined && { expiresAfterSeconds: x }),
    ...(p !== undefined && { partOf: p }),
  };
}

function isDescription(value: unknown): value is Description {
  return typeof value === 'object' && value !== null && 'g' in value && 't' in value && 'h' in value && Array.isArray(value.h);
}
