import { keptHeaders } from '../../core/kept-headers.ts';
import type { StoredEvent } from '../../data/shard/event-text.ts';

/** The event less headers that another release has stored and this one does not keep; the same one where there are none. */
export function withKeptHeaders(event: StoredEvent): StoredEvent {
  const headers = keptHeaders(event.headers);
  return headers === event.headers ? event : { ...event, headers };
}
