import { bodySignatureVerifier } from './body-signature.ts';
import type { ProviderDescriptor, SignatureScheme } from './descriptor.ts';

const scheme: SignatureScheme = { algorithm: 'sha256', header: 'sentry-hook-signature', encoding: 'hex', prefix: '' };

export const sentry: ProviderDescriptor = {
  title: 'Sentry',
  url: 'https://docs.sentry.io/organization/integrations/integration-platform/webhooks/#verifying-the-signature',
  verifier: (secrets) => bodySignatureVerifier(scheme, secrets),
  secret: { style: 'text', isOurs: false },
  deliveryIds: [{ header: 'request-id' }],
  distinctContents: { fields: ['data.event.event_id', 'data.error.event_id'] },
  docs: {
    header: '`Sentry-Hook-Signature: <hex>`',
    signed: 'the body',
    secret: 'the client secret of the integration',
    recognized: 'errors and alerts of an event',
    unrecognized: 'all others: an issue may be resolved twice',
  },
};
