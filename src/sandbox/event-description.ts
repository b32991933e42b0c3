import { joinedHeaders } from '../core/joined-headers.ts';
import { queryParameters } from '../core/sent-query.ts';

export interface DescribedEvent {
  id: string;
  /** Slug. */
  source: string;
  receivedAtMs: number;
  method: string;
  contentType: string;
  /** Query of the sender's URL, without the question mark; empty: there is none. */
  query: string;
  headers: readonly (readonly [string, string])[];
  /** Null: it came through a source. */
  webhook?: { labels: Record<string, string>; metadata: Record<string, unknown> } | null;
}

/** JSON text of what a transform sees besides the payload; of an event that was sent to webhook endpoints `source` is its type. */
export function describeEvent({ id, source, receivedAtMs, method, contentType, query, headers, webhook = null }: DescribedEvent): string {
  const receivedAt = new Date(receivedAtMs).toISOString();
  const sent = webhook === null ? {} : { type: source, labels: webhook.labels, metadata: webhook.metadata };
  return JSON.stringify({
    id,
    source,
    receivedAt,
    method,
    contentType,
    headers: joinedHeaders(headers),
    query: queryParameters(query),
    ...sent,
  });
}
