import { payloadText } from '../core/payload-text.ts';
import { type Provider, providers } from '../core/providers/providers.ts';
import { readJson } from '../core/read-json.ts';

const longestHandshake = 4096;

/** Returns whether the request only checks that the URL exists. */
export function isProbe(provider: Provider, method: string): boolean {
  const { handshake } = providers[provider];
  return handshake?.type === 'method' && handshake.method === method;
}

/** Returns the response to a provider that checks reachability before it sends events: its `challenge`; null for an event. */
export function handshakeAnswer(provider: Provider, body: Buffer): { challenge: string } | null {
  const { handshake } = providers[provider];
  if (handshake?.type !== 'challenge_body' || body.length > longestHandshake || !body.includes(handshake.bodyType)) return null;
  const sent = readJson(payloadText(body));
  if (typeof sent !== 'object' || sent === null || !('type' in sent) || sent.type !== handshake.bodyType) return null;
  return 'challenge' in sent && typeof sent.challenge === 'string' ? { challenge: sent.challenge } : null;
}
