import type { ProviderDescriptor } from './descriptor.ts';
import { svixVerifier } from './standard-webhooks.ts';

export const svix: ProviderDescriptor = {
  title: 'Svix and its customers',
  url: 'https://docs.svix.com/receiving/verifying-payloads/how-manual',
  verifier: svixVerifier,
  secret: { style: 'standard-webhooks', isOurs: false },
  deliveryIds: [
    { header: 'svix-id', isSigned: true },
    { header: 'webhook-id', isSigned: true },
  ],
  distinctContents: 'always',
  docs: {
    header: '`svix-id`, `svix-timestamp`, `svix-signature: v1,<base64>` or `v1a,<base64>`, or as `standard-webhooks`',
    signed: '`<id>.<timestamp>.<body>`, as `standard-webhooks`',
    secret: 'the secret of the endpoint: `whsec_` and base64, or its public key: `whpk_` and base64',
    recognized: 'all: an id and a time are signed',
    unrecognized: '',
  },
};
