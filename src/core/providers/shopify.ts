import { bodySignatureVerifier } from './body-signature.ts';
import type { ProviderDescriptor, SignatureScheme } from './descriptor.ts';

const scheme: SignatureScheme = { algorithm: 'sha256', header: 'x-shopify-hmac-sha256', encoding: 'base64', prefix: '' };

export const shopify: ProviderDescriptor = {
  title: 'Shopify',
  url: 'https://shopify.dev/docs/apps/build/webhooks/subscribe/https#step-2-validate-the-origin-of-your-webhook-to-ensure-its-coming-from-shopify',
  verifier: (secrets) => bodySignatureVerifier(scheme, secrets),
  secret: { style: 'text', isOurs: false },
  deliveryIds: [{ header: 'x-shopify-webhook-id' }],
  distinctContents: { fields: ['updated_at'], kindHeader: 'x-shopify-topic' },
  docs: {
    header: '`X-Shopify-Hmac-SHA256: <base64>`',
    signed: 'the body',
    secret: 'the client secret of the app',
    recognized: 'bodies with `updated_at`, per `X-Shopify-Topic`: several topics send the same body',
    unrecognized: 'all others, such as deletions and `shop/redact`',
  },
};
