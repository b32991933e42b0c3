import { digestFromHex, hmacKeys, signedByAny } from './hmac.ts';
import type { Verifier } from './signed-request.ts';

const prefix = 'sha256=';

/**
 * For senders of one's own: the hexadecimal HMAC-SHA256 of the body, alone or after `sha256=`, in the header
 * `X-Webhook-Signature`, or in `X-Signature` when the first is absent.
 */
export function genericVerifier(secrets: readonly string[]): Verifier {
  const keys = hmacKeys(secrets);
  return function* ({ headers, body }) {
    const header = headers['x-webhook-signature'] ?? headers['x-signature'];
    if (typeof header !== 'string') return null;
    const signature = digestFromHex(header.startsWith(prefix) ? header.slice(prefix.length) : header);
    return signature === null ? null : yield* signedByAny(keys, { prefix: '', body }, [signature]);
  };
}
