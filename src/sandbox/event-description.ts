import { joinedHeaders } from '../core/joined-headers.ts';

export interface DescribedEvent {
  id: string;
  /** Slug. */
  source: string;
  receivedAtMs: number;
  method: string;
  contentType: string;
  headers: readonly (readonly [string, string])[];
}

/** JSON text of what a transform sees besides the payload. */
export function describeEvent({ id, source, receivedAtMs, method, contentType, headers }: DescribedEvent): string {
  const receivedAt = new Date(receivedAtMs).toISOString();
  return JSON.stringify({ id, source, receivedAt, method, contentType, headers: joinedHeaders(headers) });
}
