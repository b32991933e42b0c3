import { hash } from 'node:crypto';
import { distinctText } from '../core/distinct-text.ts';
import type { EventContext } from '../core/event-context.ts';
import type { DeliveryId } from '../core/providers/descriptor.ts';
import { type Provider, providers } from '../core/providers/providers.ts';
import type { SourceRecord } from '../core/records.ts';
import { textAt } from '../core/text-at.ts';
import { bodyDigest } from './body-digest.ts';
import { headerValue } from './identifying-values.ts';
import type { ReceivedRequest } from './received-request.ts';
import { readsSignedPayload, signedFields, signedIdentity } from './signed-events.ts';

/** How a source detects duplicates of an event. */
export interface Deduplication {
  windowMs: number;
  /** Whether `identify` reads the parsed body. */
  readsPayload(received: Received): boolean;
  /** Paths of the texts in it that `identify` reads. */
  fields(received: Received): readonly string[];
  /** At most two texts, of which the same event has one; none when this one cannot be distinguished from others. */
  identify(context: EventContext, received: Received): string[];
}

type Received = Pick<ReceivedRequest, 'body' | 'query' | 'signed'>;

const hourMs = 3_600_000;

/** Null when the source detects no duplicates. */
export function deduplication({ provider, dedup }: SourceRecord): Deduplication | null {
  const { strategy, header, windowHours } = dedup ?? { strategy: 'auto', header: null, windowHours: 24 };
  const windowMs = windowHours * hourMs;
  const byHeader: DeliveryId[] | null = header === null ? null : [{ header }];
  switch (strategy) {
    case 'auto':
    case 'provider_id':
      return byIds(provider, windowMs, byHeader ?? providers[provider].deliveryIds);
    case 'idempotency_key':
      return byIds(provider, windowMs, byHeader ?? [{ header: 'idempotency-key' }]);
    case 'payload_hash':
      return { windowMs, readsPayload: () => false, fields: () => [], identify: (_context, received) => [contentHash(received)] };
    case 'none':
      return null;
    default:
      return strategy satisfies never;
  }
}

/** Hash of the body, and of the query where there is one: requests without a body carry their content in it. */
function contentHash({ body, query }: Received): string {
  const ofBody = bodyDigest(body);
  return query === '' ? ofBody : `${ofBody}\n${hash('sha256', query, 'hex')}`;
}

/** The dedup key of an event: 128 bits in hexadecimal that only equal events of one source share. */
export function eventDedupKey(sourceId: string, identity: string): string {
  return hash('sha256', `${sourceId}\n${distinctText(identity)}`, 'hex').slice(0, 32);
}

function byIds(provider: Provider, windowMs: number, places: readonly DeliveryId[]): Deduplication | null {
  if (places.length === 0) return null;
  return {
    windowMs,
    readsPayload: (received) => places.some((place) => 'field' in place) || readsSignedPayload(provider, received),
    fields: (received) => [...places.flatMap((place) => ('field' in place ? [place.field] : [])), ...signedFields(provider, received)],
    identify: (context, received) => {
      const { id, isSigned } = findId(context, received, places);
      const signed = isSigned ? null : signedIdentity(provider, context, received);
      return [id, signed].filter((identity) => identity !== null);
    },
  };
}

/** The first id found. */
function findId(context: EventContext, { signed }: Received, places: readonly DeliveryId[]): { id: string | null; isSigned: boolean } {
  for (const place of places) {
    const id = 'header' in place ? headerValue(context.headers, place.header) : textAt(context.payload, place.field);
    if (id !== null) return { id, isSigned: signed !== null && ('field' in place || place.isSigned === true) };
  }
  return { id: null, isSigned: false };
}
