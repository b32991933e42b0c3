import type { SourceRecord } from '../../core/records.ts';
import { genericVerifier } from './generic.ts';
import { githubVerifier } from './github.ts';
import type { Verifier } from './signed-request.ts';
import { standardWebhooksVerifier } from './standard-webhooks.ts';
import { stripeVerifier } from './stripe.ts';

/** The provider's scheme with these secrets, as the provider shows them to its users. */
export function providerVerifier(provider: SourceRecord['provider'], secrets: readonly string[]): Verifier {
  switch (provider) {
    case 'generic':
      return genericVerifier(secrets);
    case 'github':
      return githubVerifier(secrets);
    case 'stripe':
      return stripeVerifier(secrets);
    case 'standard-webhooks':
      return standardWebhooksVerifier(secrets);
  }
}
