import { hmacKeys, isSignedByAny, isTimely } from './hmac.ts';
import type { Verifier } from './signed-request.ts';

const secretPrefix = 'whsec_';
const signaturePrefix = 'v1,';

/**
 * `webhook-id`, `webhook-timestamp` (seconds) and `webhook-signature` (`v1,<base64>`, several separated by spaces), over
 * `<id>.<timestamp>.<body>` with secrets `whsec_<base64>`
 * (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
 */
export function standardWebhooksVerifier(secrets: readonly string[]): Verifier {
  const keys = hmacKeys(
    secrets.map((secret) => Buffer.from(secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : secret, 'base64')),
  );
  return ({ headers, body, nowMs }) => {
    const { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': list } = headers;
    if (typeof id !== 'string' || typeof seconds !== 'string' || typeof list !== 'string') return false;
    const signatures = list
      .split(' ')
      .filter((item) => item.startsWith(signaturePrefix))
      .map((item) => Buffer.from(item.slice(signaturePrefix.length), 'base64'));
    return isTimely(seconds, nowMs) && isSignedByAny(keys, `${id}.${seconds}.`, body, signatures);
  };
}
