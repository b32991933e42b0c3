import { type Provider, withoutSecretHeaders } from '../core/providers.ts';
import type { StoredEvent } from '../data/event-text.ts';

/**
 * The event without the header that carries the secret of its source, with which older ones are stored. `provider`: that of the source;
 * null when it is gone, and may have been any.
 */
export function withoutSecret(event: StoredEvent, provider: Provider | null): StoredEvent {
  const headers = withoutSecretHeaders(event.headers, provider);
  return headers === event.headers ? event : { ...event, headers };
}
