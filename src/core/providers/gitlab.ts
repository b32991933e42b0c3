import { isVerified, type ProviderDescriptor, type Verifier } from './descriptor.ts';
import { knownTokens } from './known-token.ts';
import { headerMissing, noSecretMatches } from './signature-failure.ts';
import { standardWebhooksVerifier } from './standard-webhooks.ts';

const tokenHeader = 'x-gitlab-token';
const signingTokenPrefix = 'whsec_';

/**
 * The secret token itself in `X-Gitlab-Token`; or, with a signing token (`whsec_…`), the headers of Standard Webhooks
 * (https://docs.gitlab.com/user/project/integrations/webhooks/#secret-tokens).
 */
function gitlabVerifier(secrets: readonly string[]): Verifier {
  const isToken = knownTokens(secrets.filter((secret) => secret !== ''));
  const signingTokens = secrets.filter((secret) => secret.startsWith(signingTokenPrefix));
  const signature = standardWebhooksVerifier(signingTokens);
  return function* (request) {
    const token = request.headers[tokenHeader];
    // A signature proves more than the token, which may accompany it.
    const result = yield* signature(request);
    if (isVerified(result)) return result;
    if (typeof token === 'string' && isToken(token)) return { signed: null };
    if (signingTokens.length > 0 && (typeof token !== 'string' || request.headers['webhook-signature'] !== undefined)) return result;
    return typeof token === 'string' ? noSecretMatches : headerMissing(tokenHeader);
  };
}

export const gitlab: ProviderDescriptor = {
  title: 'GitLab',
  url: 'https://docs.gitlab.com/user/project/integrations/webhooks/#secret-tokens',
  verifier: gitlabVerifier,
  secret: { style: 'text', isOurs: true },
  deliveryIds: [{ header: 'webhook-id', isSigned: true }, { header: 'idempotency-key' }],
  distinctContents: 'always',
  docs: {
    header: '`X-Gitlab-Token`: the secret token itself; with a signing token (`whsec_…`) the headers of `standard-webhooks`',
    signed: 'nothing; with a signing token `<id>.<timestamp>.<body>`',
    secret: 'the secret token, or the signing token',
    recognized: 'all with a signing token',
    unrecognized: 'all with a secret token: nothing is signed',
  },
};
