import type { SourceRecord } from '../../core/records.ts';
import { bodySignatures, bodySignatureVerifier } from './body-signature.ts';
import { genericVerifier } from './generic.ts';
import { gitlabVerifier } from './gitlab.ts';
import type { Verifier } from './signed-request.ts';
import { slackVerifier } from './slack.ts';
import { standardWebhooksVerifier, svixVerifier } from './standard-webhooks.ts';
import { timedSignatures, timedSignatureVerifier } from './timed-signature.ts';
import { twilioVerifier } from './twilio.ts';

// biome-ignore lint/correctness/useYield: it says at once that nobody vouches for the request.
export const nobody: Verifier = function* () {
  return null;
};

/** The provider's scheme with these secrets, as the provider shows them to its users. */
export function providerVerifier(
  { provider, verification }: Pick<SourceRecord, 'provider' | 'verification'>,
  secrets: readonly string[],
): Verifier {
  switch (provider) {
    case 'generic':
      return genericVerifier(secrets);
    case 'custom':
      return verification === undefined ? nobody : bodySignatureVerifier(verification, secrets);
    case 'github':
    case 'shopify':
    case 'intercom':
    case 'sentry':
    case 'bitbucket':
      return bodySignatureVerifier(bodySignatures[provider], secrets);
    case 'stripe':
    case 'paddle':
      return timedSignatureVerifier(timedSignatures[provider], secrets);
    case 'gitlab':
      return gitlabVerifier(secrets);
    case 'slack':
      return slackVerifier(secrets);
    case 'twilio':
      return twilioVerifier(secrets);
    case 'standard-webhooks':
      return standardWebhooksVerifier(secrets);
    case 'svix':
      return svixVerifier(secrets);
    default:
      return provider satisfies never;
  }
}
