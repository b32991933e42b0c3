import { bodySignatureVerifier } from './body-signature.ts';
import type { ProviderDescriptor, SignatureScheme } from './descriptor.ts';

const scheme: SignatureScheme = { algorithm: 'sha1', header: 'x-hub-signature', encoding: 'hex', prefix: 'sha1=' };

export const intercom: ProviderDescriptor = {
  title: 'Intercom',
  url: 'https://developers.intercom.com/docs/webhooks/webhook-notifications#signed-notifications',
  verifier: (secrets) => bodySignatureVerifier(scheme, secrets),
  secret: { style: 'text', isOurs: false },
  deliveryIds: [{ field: 'id' }],
  distinctContents: { fields: ['id'] },
  // Sent before the address is accepted (https://developers.intercom.com/docs/webhooks/setting-up-webhooks).
  handshake: { type: 'method', method: 'HEAD' },
  docs: {
    header: '`X-Hub-Signature: sha1=<hex HMAC-SHA1>`',
    signed: 'the body',
    secret: 'the client secret of the app',
    recognized: 'events with `id` in the body',
    unrecognized: 'all others',
  },
};
