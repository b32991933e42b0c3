import { payloadText } from '../core/payload-text.ts';
import type { Provider } from '../core/providers.ts';
import { readJson } from '../core/read-json.ts';

const longestHandshake = 4096;

/** Whether the request only asks if somebody is there: Intercom sends HEAD before it takes an address (https://developers.intercom.com/docs/webhooks/setting-up-webhooks). */
export function isProbe(provider: Provider, method: string): boolean {
  return provider === 'intercom' && method === 'HEAD';
}

/**
 * The answer to a provider that wants to see that it reaches us before it sends events; null for an event. Slack: `challenge` of
 * `url_verification` back (https://docs.slack.dev/reference/events/url_verification).
 */
export function handshakeAnswer(provider: Provider, body: Buffer): { challenge: string } | null {
  if (provider !== 'slack' || body.length > longestHandshake || !body.includes('url_verification')) return null;
  const sent = readJson(payloadText(body));
  if (typeof sent !== 'object' || sent === null || !('type' in sent) || sent.type !== 'url_verification') return null;
  return 'challenge' in sent && typeof sent.challenge === 'string' ? { challenge: sent.challenge } : null;
}
