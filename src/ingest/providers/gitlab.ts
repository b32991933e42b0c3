import { knownTokens } from './known-token.ts';
import type { Verifier } from './signed-request.ts';
import { standardWebhooksVerifier } from './standard-webhooks.ts';

const tokenHeader = 'x-gitlab-token';
const signingTokenPrefix = 'whsec_';

/**
 * The secret token itself in `X-Gitlab-Token`; or, with a signing token (`whsec_…`), the headers of Standard Webhooks
 * (https://docs.gitlab.com/user/project/integrations/webhooks/#secret-tokens).
 */
export function gitlabVerifier(secrets: readonly string[]): Verifier {
  const isToken = knownTokens(secrets.filter((secret) => secret !== ''));
  const signature = standardWebhooksVerifier(secrets.filter((secret) => secret.startsWith(signingTokenPrefix)));
  return function* (request) {
    const token = request.headers[tokenHeader];
    // What is signed tells more than the token, which may stand beside it.
    return (yield* signature(request)) ?? (typeof token === 'string' && isToken(token) ? { signed: null } : null);
  };
}
