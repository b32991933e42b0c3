import { withoutCredentialHeaders } from '../core/credential-names.ts';
import type { StoredEvent } from '../data/event-text.ts';

/** The event without the credentials of its sender, with which older ones are stored; the same one where there are none. */
export function withoutCredentials(event: StoredEvent): StoredEvent {
  const headers = withoutCredentialHeaders(event.headers);
  return headers === event.headers ? event : { ...event, headers };
}
