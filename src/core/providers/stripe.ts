import type { ProviderDescriptor } from './descriptor.ts';
import { timedSignatureVerifier } from './timed-signature.ts';

const scheme = { header: 'stripe-signature', separator: ',', time: 't', signature: 'v1', joint: '.' };

export const stripe: ProviderDescriptor = {
  title: 'Stripe',
  url: 'https://docs.stripe.com/webhooks#verify-manually',
  verifier: (secrets) => timedSignatureVerifier(scheme, secrets),
  secret: { style: 'text', isOurs: false },
  deliveryIds: [{ field: 'id' }],
  distinctContents: 'always',
  docs: {
    header: '`Stripe-Signature: t=<seconds>,v1=<hex>`, several `v1` allowed',
    signed: '`<seconds>.<body>`',
    secret: 'the secret of the endpoint, as it is shown',
    recognized: 'all: an id and a time are signed',
    unrecognized: '',
  },
};
