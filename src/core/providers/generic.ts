import type { ProviderDescriptor, Verifier } from './descriptor.ts';
import { digestFromHex, hmacKeys, signedByAny } from './hmac.ts';
import { headerMalformed, headerMissing } from './signature-failure.ts';

const prefix = 'sha256=';

/**
 * For senders of one's own: the hexadecimal HMAC-SHA256 of the body, alone or after `sha256=`, in the header
 * `X-Webhook-Signature`, or in `X-Signature` when the first is absent.
 */
function genericVerifier(secrets: readonly string[]): Verifier {
  const keys = hmacKeys(secrets);
  return function* ({ headers, body }) {
    const name =
      headers['x-webhook-signature'] === undefined && headers['x-signature'] !== undefined ? 'x-signature' : 'x-webhook-signature';
    const header = headers[name];
    if (typeof header !== 'string') return headerMissing(name);
    const signature = digestFromHex(header.startsWith(prefix) ? header.slice(prefix.length) : header);
    return signature === null ? headerMalformed(name) : yield* signedByAny(keys, { prefix: '', body }, [signature]);
  };
}

export const generic: ProviderDescriptor = {
  title: 'senders of your own',
  url: null,
  verifier: genericVerifier,
  secret: { style: 'text', isOurs: true },
  deliveryIds: [],
  distinctContents: 'never',
  docs: {
    header: '`X-Webhook-Signature`, or `X-Signature` when the first is absent: the hexadecimal HMAC-SHA256, alone or after `sha256=`',
    signed: 'the body',
    secret: 'any text',
    recognized: '',
    unrecognized: 'all: senders decide what they send twice',
  },
};
