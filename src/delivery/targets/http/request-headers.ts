import type { KeyObject } from 'node:crypto';
import { hopHeader, hopOf } from '../../../core/hops.ts';
import type { HeaderRecord, HttpAuthRecord } from '../../../core/records.ts';
import { connectionHeaders, payloadHeaders, reservedPrefixes, signatureHeaders } from '../../../core/reserved-headers.ts';
import { webhookSignature } from '../../../core/signing.ts';
import type { StoredEvent } from '../../../data/shard/event-text.ts';
import { secretsInHeader } from './sent-secrets.ts';

/** Headers of the connection and headers that Posthorn sets: never taken from a sender, nor from a destination except the user agent. */
const denied = new Set([...connectionHeaders, 'user-agent']);

export function isDeniedHeader(name: string): boolean {
  return denied.has(name) || reservedPrefixes.some((prefix) => name.startsWith(prefix));
}

/** The headers that a destination adds to every request, its secrets opened. */
export interface DestinationHeaders {
  /** Names in lower case, each once. */
  own: readonly [string, string][];
  names: ReadonlySet<string>;
  signingKeys: readonly KeyObject[];
  /** Names in lower case of the headers of an event that are sent on; null: all. */
  forwarded: ReadonlySet<string> | null;
}

export interface AttemptIdentity {
  messageId: string;
  eventId: string;
  /** From 1. */
  number: number;
  timestampSeconds: number;
  userAgent: string;
  /** Signature of a large payload, which was computed in pieces before. */
  signature?: string;
  /** Null: the message has not failed over. */
  failover: { originalDestinationId: string; reason: string } | null;
}

/**
 * Returns the headers with opened values. `secrets`: values to mask in what is recorded of the response. `secretNames`: names of the headers that were sealed,
 * in lower case. Throws what `open` throws.
 */
export function openedHeaders(
  headers: readonly HeaderRecord[],
  open: (sealed: string) => string,
): { headers: { name: string; value: string }[]; secrets: string[]; secretNames: string[] } {
  const secrets: string[] = [];
  const secretNames: string[] = [];
  const opened = headers.map(({ name, value, sealed }) => {
    if (sealed === undefined) return { name, value };
    const plain = open(sealed);
    secretNames.push(name.toLowerCase());
    secrets.push(...secretsInHeader(name.toLowerCase(), plain));
    return { name, value: plain };
  });
  return { headers: opened, secrets, secretNames };
}

/** Whether a destination may have the header, with a name in lower case. */
export function isOwnHeader(name: string): boolean {
  return name === 'user-agent' || !(isDeniedHeader(name) || signatureHeaders.has(name));
}

export function destinationHeaders(
  headers: readonly { name: string; value: string }[],
  auth: HttpAuthRecord,
  signingKeys: readonly KeyObject[],
  forwardHeaders?: readonly string[],
): DestinationHeaders {
  const own = new Map([...headers.map(({ name, value }) => [name.toLowerCase(), value] as const), ...authHeaders(auth)]);
  const allowed = [...own].filter(([name]) => isOwnHeader(name));
  const forwarded = forwardHeaders === undefined ? null : new Set([...payloadHeaders, ...forwardHeaders]);
  return { own: allowed, names: new Set(allowed.map(([name]) => name)), signingKeys, forwarded };
}

/**
 * All headers of one attempt, alternating names and values: those of the sender that the destination forwards, then those of the destination, which replace them, then those of Posthorn. The
 * sender's own `webhook-*` headers stay unless the destination signs.
 */
export function requestHeaders(
  { own, names, signingKeys, forwarded }: DestinationHeaders,
  event: Pick<StoredEvent, 'headers' | 'contentType' | 'payload'>,
  attempt: AttemptIdentity,
): string[] {
  const isSigned = signingKeys.length > 0;
  const result: string[] = [];
  let hasContentType = names.has('content-type');
  let hasWebhookId = false;
  for (const [name, value] of event.headers) {
    if (forwarded !== null && !forwarded.has(name)) continue;
    if (isDeniedHeader(name) || names.has(name) || (isSigned && signatureHeaders.has(name))) continue;
    hasContentType ||= name === 'content-type';
    hasWebhookId ||= name === 'webhook-id';
    result.push(name, value);
  }
  if (!hasContentType && event.contentType !== '') result.push('content-type', event.contentType);
  for (const [name, value] of own) result.push(name, value);
  if (!hasWebhookId) result.push('webhook-id', attempt.messageId);
  if (isSigned) {
    const signature = attempt.signature ?? webhookSignature(signingKeys, attempt.messageId, attempt.timestampSeconds, event.payload);
    result.push('webhook-timestamp', String(attempt.timestampSeconds), 'webhook-signature', signature);
  }
  if (!names.has('user-agent')) result.push('user-agent', attempt.userAgent);
  result.push('accept-encoding', 'identity');
  result.push('x-posthorn-event-id', attempt.eventId, 'x-posthorn-attempt', String(attempt.number));
  const hop = hopOf(event.headers);
  if (hop !== null) result.push(hopHeader, String(hop + 1));
  if (attempt.failover !== null) {
    const { originalDestinationId, reason } = attempt.failover;
    result.push(
      'x-posthorn-failover',
      'true',
      'x-posthorn-original-destination',
      originalDestinationId,
      'x-posthorn-failure-reason',
      reason,
    );
  }
  return result;
}

/** Headers that authenticate, names in lower case. */
export function authHeaders(auth: HttpAuthRecord): [string, string][] {
  switch (auth.type) {
    case 'none':
      return [];
    case 'basic':
      return [['authorization', `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString('base64')}`]];
    case 'bearer':
      return [['authorization', `Bearer ${auth.token}`]];
    case 'api_key':
      return [[auth.headerName.toLowerCase(), auth.key]];
    case 'custom_header':
      return [[auth.headerName.toLowerCase(), auth.headerValue]];
    default:
      return auth satisfies never;
  }
}
