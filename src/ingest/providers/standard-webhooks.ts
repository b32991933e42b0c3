import { hmacKeys, isSignedByAny, isTimely } from './hmac.ts';
import type { SignedRequest, Verifier } from './signed-request.ts';

const secretPrefix = 'whsec_';
const signaturePrefix = 'v1,';

/**
 * `webhook-id`, `webhook-timestamp` (seconds) and `webhook-signature` (`v1,<base64>`, several separated by spaces), over
 * `<id>.<timestamp>.<body>` with secrets `whsec_<base64>`
 * (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
 */
export function standardWebhooksVerifier(secrets: readonly string[]): Verifier {
  const isSigned = signatureCheck(secrets);
  return (request) => isSigned(request, 'webhook');
}

/**
 * The same under `svix-id`, `svix-timestamp` and `svix-signature`, or under the names of Standard Webhooks
 * (https://docs.svix.com/receiving/verifying-payloads/how-manual).
 */
export function svixVerifier(secrets: readonly string[]): Verifier {
  const isSigned = signatureCheck(secrets);
  return (request) => isSigned(request, request.headers['svix-id'] === undefined ? 'webhook' : 'svix');
}

function signatureCheck(secrets: readonly string[]): (request: SignedRequest, name: 'webhook' | 'svix') => boolean {
  const keys = hmacKeys(
    secrets.map((secret) => Buffer.from(secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : secret, 'base64')),
  );
  return ({ headers, body, nowMs }, name) => {
    const { [`${name}-id`]: id, [`${name}-timestamp`]: seconds, [`${name}-signature`]: list } = headers;
    if (typeof id !== 'string' || typeof seconds !== 'string' || typeof list !== 'string') return false;
    const signatures = list
      .split(' ')
      .filter((item) => item.startsWith(signaturePrefix))
      .map((item) => Buffer.from(item.slice(signaturePrefix.length), 'base64'));
    return isTimely(seconds, nowMs) && isSignedByAny(keys, `${id}.${seconds}.`, body, signatures);
  };
}
