import { bodySignatureVerifier } from './body-signature.ts';
import type { ProviderDescriptor, Verifier } from './descriptor.ts';

/** Verifier of a source without authentication. */
// biome-ignore lint/correctness/useYield: it returns at once that the request is not authenticated.
export const nobody: Verifier = function* () {
  return { reason: 'no_secret' };
};

export const custom: ProviderDescriptor = {
  title: 'senders whose scheme the source describes',
  url: null,
  verifier: (secrets, scheme) => (scheme === undefined ? nobody : bodySignatureVerifier(scheme, secrets)),
  secret: { style: 'text', isOurs: true },
  deliveryIds: [],
  distinctContents: 'never',
  docs: {
    header:
      'the fields of `verification`: `header`, `algorithm` (`sha1`, `sha256`, `sha512`), `encoding` (`hex`, `base64` with its padding), `prefix`',
    signed: 'the body',
    secret: 'any text',
    recognized: '',
    unrecognized: 'all: senders decide what they send twice',
  },
};
