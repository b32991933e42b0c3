import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Provider } from '../core/providers.ts';
import type { SourceRecord } from '../core/records.ts';
import type { EventContext } from './event-context.ts';

/** How a source knows an event that comes twice. */
export interface Deduplication {
  windowMs: number;
  /** The same text for the same event; null when this one cannot be told from others. */
  identify(context: EventContext, body: Buffer): string | null;
}

type IdPlace = { header: string } | { field: string };

/** Where each provider puts an id that is the same when it sends a delivery again. Of several the first that is there counts. */
const deliveryIds: Record<Provider, readonly IdPlace[]> = {
  generic: [],
  custom: [],
  github: [{ header: 'x-github-delivery' }],
  gitlab: [{ header: 'idempotency-key' }, { header: 'webhook-id' }],
  stripe: [{ field: 'id' }],
  shopify: [{ header: 'x-shopify-webhook-id' }],
  slack: [{ field: 'event_id' }],
  twilio: [{ header: 'i-twilio-idempotency-token' }],
  paddle: [{ field: 'event_id' }],
  'standard-webhooks': [{ header: 'webhook-id' }],
  svix: [{ header: 'svix-id' }, { header: 'webhook-id' }],
  intercom: [{ field: 'id' }],
  sentry: [{ header: 'request-id' }],
  bitbucket: [{ header: 'x-request-uuid' }],
};

const hourMs = 3_600_000;

/** Null when the source knows no duplicates. */
export function deduplication({ provider, dedup }: SourceRecord): Deduplication | null {
  const { strategy, header, windowHours } = dedup ?? { strategy: 'auto', header: null, windowHours: 24 };
  const windowMs = windowHours * hourMs;
  const byHeader: IdPlace[] | null = header === null ? null : [{ header }];
  switch (strategy) {
    case 'auto':
    case 'provider_id':
      return byIds(windowMs, byHeader ?? deliveryIds[provider]);
    case 'idempotency_key':
      return byIds(windowMs, byHeader ?? [{ header: 'idempotency-key' }]);
    case 'payload_hash':
      return { windowMs, identify: (_context, body) => hash('sha256', body, 'hex') };
    case 'none':
      return null;
    default:
      return strategy satisfies never;
  }
}

/** What marks an event in Redis: 128 bits in hexadecimal that only equal events of one source share. */
export function eventMark(sourceId: string, identity: string): string {
  return hash('sha256', `${sourceId}\n${identity}`, 'hex').slice(0, 32);
}

function byIds(windowMs: number, places: readonly IdPlace[]): Deduplication | null {
  if (places.length === 0) return null;
  return {
    windowMs,
    identify: (context) => {
      for (const place of places) {
        const id = 'header' in place ? headerValue(context.headers, place.header) : fieldValue(context.payload, place.field);
        if (id !== null) return id;
      }
      return null;
    },
  };
}

function headerValue(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name];
  return typeof value === 'string' && value !== '' ? value : null;
}

function fieldValue(payload: unknown, name: string): string | null {
  if (typeof payload !== 'object' || payload === null || !Object.hasOwn(payload, name)) return null;
  const value: unknown = Reflect.get(payload, name);
  return typeof value === 'string' && value !== '' ? value : null;
}
