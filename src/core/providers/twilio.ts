import { createHash, timingSafeEqual } from 'node:crypto';
import { updateInPieces } from '../hash-in-pieces.ts';
import { isVerified, type ProviderDescriptor, type SignedRequest, type Verifier } from './descriptor.ts';
import { digestFromBase64, digestFromHex, hmacKeys, signedByAny } from './hmac.ts';
import { headerMalformed, headerMissing, noSecretMatches, type SignatureFailure } from './signature-failure.ts';
import { signedFormFields } from './twilio-form.ts';

const signatureHeader = 'x-twilio-signature';
const form = /^application\/x-www-form-urlencoded\b/i;
const empty = Buffer.alloc(0);
const defaultPorts = { 'https:': '443', 'http:': '80' };

/**
 * `X-Twilio-Signature`: base64 HMAC-SHA1 of the address that Twilio was given and the form's fields, sorted by name; for other
 * bodies of the address alone, whose parameter `bodySHA256` then is the SHA-256 of the body
 * (https://www.twilio.com/docs/usage/webhooks/webhooks-security). The key is the account's auth token.
 */
function twilioVerifier(secrets: readonly string[]): Verifier {
  const keys = hmacKeys(secrets);
  return function* (request) {
    const header = request.headers[signatureHeader];
    if (typeof header !== 'string') return headerMissing(signatureHeader);
    const signature = digestFromBase64(header, 'sha1');
    if (signature === null) return headerMalformed(signatureHeader);
    const fields = yield* signedFields(request);
    if (!Buffer.isBuffer(fields)) return fields;
    for (const prefix of addresses(request)) {
      const result = yield* signedByAny(keys, { prefix, body: fields }, [signature], 'sha1');
      if (isVerified(result)) return result;
    }
    return noSecretMatches;
  };
}

/** The part of the signed text after the address, or why the signature does not cover the body. */
function* signedFields({ headers, body, path }: SignedRequest): Generator<undefined, Buffer | SignatureFailure> {
  const bodySha256 = new URLSearchParams(path.split('?')[1]).get('bodySHA256');
  if (bodySha256 !== null) {
    const sent = digestFromHex(bodySha256);
    const hash = createHash('sha256');
    yield* updateInPieces(hash, body);
    return sent !== null && timingSafeEqual(sent, hash.digest()) ? empty : { reason: 'body_digest_mismatch' };
  }
  if (!form.test(headers['content-type'] ?? '')) return body.length === 0 ? empty : { reason: 'body_not_covered' };
  return (yield* signedFormFields(body)) ?? { reason: 'body_not_covered' };
}

/**
 * The addresses that Twilio may have been given: the public one, else that of the `Host` header, which the client chooses. Proxies end TLS and rewrite
 * ports, and Twilio signs with the default port or without.
 */
function addresses({ headers, path, publicUrl }: SignedRequest): string[] {
  const ofHost = headers.host === undefined ? [] : [`https://${headers.host}`, `http://${headers.host}`];
  const bases = publicUrl === undefined ? ofHost : [publicUrl];
  return [...new Set(bases.flatMap(withAndWithoutPort))].map((base) => base + path);
}

function withAndWithoutPort(base: string): string[] {
  const match = /^(https?:)\/\/([^/:[\]]+|\[[^\]]+\])(:\d+)?(.*)$/i.exec(base);
  if (match === null) return [];
  const [, scheme = '', host = '', , rest = ''] = match;
  const port = scheme.toLowerCase() === 'https:' ? defaultPorts['https:'] : defaultPorts['http:'];
  return [base, `${scheme}//${host}${rest}`, `${scheme}//${host}:${port}${rest}`];
}

export const twilio: ProviderDescriptor = {
  title: 'Twilio',
  url: 'https://www.twilio.com/docs/usage/webhooks/webhooks-security',
  verifier: twilioVerifier,
  secret: { style: 'text', isOurs: false },
  deliveryIds: [{ header: 'i-twilio-idempotency-token' }],
  distinctContents: { fields: ['MessageSid', 'RecordingSid', 'SequenceNumber'] },
  docs: {
    header: '`X-Twilio-Signature: <base64 HMAC-SHA1>`',
    signed:
      'the address and the fields of the form (at most 5,000); with other bodies the address, which holds the digest of the body as `bodySHA256`',
    secret: 'the auth token of the account',
    recognized: 'forms with `MessageSid`, `RecordingSid` or `SequenceNumber`, in whatever order',
    unrecognized: 'all others',
  },
};
