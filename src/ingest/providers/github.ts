import { hmacKeys, isSignedByAny, sha256FromHex } from './hmac.ts';
import type { Verifier } from './signed-request.ts';

const prefix = 'sha256=';

/**
 * `X-Hub-Signature-256: sha256=<hex HMAC-SHA256 of the body>`
 * (https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries).
 */
export function githubVerifier(secrets: readonly string[]): Verifier {
  const keys = hmacKeys(secrets);
  return ({ headers, body }) => {
    const header = headers['x-hub-signature-256'];
    if (typeof header !== 'string' || !header.startsWith(prefix)) return false;
    const signature = sha256FromHex(header.slice(prefix.length));
    return signature !== null && isSignedByAny(keys, '', body, [signature]);
  };
}
