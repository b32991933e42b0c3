import type { KeyObject } from 'node:crypto';
import { hopHeader, hopOf } from '../../../core/hops.ts';
import { signatureHeaders } from '../../../core/reserved-headers.ts';
import { webhookSignature } from '../../../core/signing.ts';
import type { StoredEvent } from '../../../data/shard/event-text.ts';
import { isDeniedHeader } from './request-headers.ts';

/** Names in lower case, without what an endpoint may not set. */
export function endpointHeaders(headers: readonly { name: string; value: string }[]): [string, string][] {
  return headers.map(({ name, value }): [string, string] => [name.toLowerCase(), value]).filter(([name]) => isEndpointHeader(name));
}

/** Whether an endpoint may have the header, with a name in lower case. */
export function isEndpointHeader(name: string): boolean {
  return name !== 'content-type' && !isDeniedHeader(name) && !signatureHeaders.has(name);
}

/** Returns all headers of one attempt at a webhook endpoint, alternating names and values: ours, then the endpoint's own. */
export function webhookHeaders(
  own: readonly [string, string][],
  signingKeys: readonly KeyObject[],
  event: Pick<StoredEvent, 'headers' | 'contentType' | 'payload' | 'sourceSlug'>,
  attempt: { messageId: string; eventId: string; number: number; timestampSeconds: number; userAgent: string },
): string[] {
  const { messageId, timestampSeconds } = attempt;
  const hop = hopOf(event.headers);
  return [
    'webhook-id',
    messageId,
    'webhook-timestamp',
    String(timestampSeconds),
    'webhook-signature',
    webhookSignature(signingKeys, messageId, timestampSeconds, event.payload),
    'content-type',
    event.contentType,
    'user-agent',
    attempt.userAgent,
    'accept-encoding',
    'identity',
    'x-posthorn-event-id',
    attempt.eventId,
    'x-posthorn-event-type',
    event.sourceSlug,
    'x-posthorn-attempt',
    String(attempt.number),
    ...(hop === null ? [] : [hopHeader, String(hop + 1)]),
    ...own.flat(),
  ];
}
