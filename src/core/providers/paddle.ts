import type { ProviderDescriptor } from './descriptor.ts';
import { timedSignatureVerifier } from './timed-signature.ts';

const scheme = { header: 'paddle-signature', separator: ';', time: 'ts', signature: 'h1', joint: ':' };

export const paddle: ProviderDescriptor = {
  title: 'Paddle',
  url: 'https://developer.paddle.com/webhooks/signature-verification',
  verifier: (secrets) => timedSignatureVerifier(scheme, secrets),
  secret: { style: 'text', isOurs: false },
  deliveryIds: [{ field: 'event_id' }],
  distinctContents: 'always',
  docs: {
    header: '`Paddle-Signature: ts=<seconds>;h1=<hex>`, several `h1` allowed',
    signed: '`<seconds>:<body>`',
    secret: 'the secret of the endpoint, as it is shown',
    recognized: 'all: an id and a time are signed',
    unrecognized: '',
  },
};
