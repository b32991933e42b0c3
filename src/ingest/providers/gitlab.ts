import { createHash, timingSafeEqual } from 'node:crypto';
import type { Verifier } from './signed-request.ts';
import { standardWebhooksVerifier } from './standard-webhooks.ts';

const tokenHeader = 'x-gitlab-token';
const signingTokenPrefix = 'whsec_';

/**
 * The secret token itself in `X-Gitlab-Token`; or, with a signing token (`whsec_…`), the headers of Standard Webhooks
 * (https://docs.gitlab.com/user/project/integrations/webhooks/#secret-tokens).
 */
export function gitlabVerifier(secrets: readonly string[]): Verifier {
  const tokens = secrets.filter((secret) => secret !== '').map(digest);
  const signature = standardWebhooksVerifier(secrets.filter((secret) => secret.startsWith(signingTokenPrefix)));
  return function* (request) {
    const token = request.headers[tokenHeader];
    // What is signed tells more than the token, which may stand beside it.
    return (yield* signature(request)) ?? (typeof token === 'string' && isOneOf(tokens, digest(token)) ? { signed: null } : null);
  };
}

/** Digests are equally long, so that the comparison takes equally long for every token. */
function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

function isOneOf(known: readonly Buffer[], sent: Buffer): boolean {
  let isKnown = false;
  for (const each of known) if (timingSafeEqual(each, sent)) isKnown = true;
  return isKnown;
}
