import { createHash, timingSafeEqual } from 'node:crypto';
import { updateInPieces } from '../hash-in-pieces.ts';
import { wholePayloadBytes } from '../payload-sizes.ts';
import type { ProviderDescriptor, SignedRequest, Verifier } from './descriptor.ts';
import { digestFromBase64, digestFromHex, hmacKeys, signedByAny } from './hmac.ts';

const form = /^application\/x-www-form-urlencoded\b/i;
/** Of a form; Twilio sends about a hundred. More would be sorted before anything is verified. */
const maxFields = 5000;
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
    const header = request.headers['x-twilio-signature'];
    const signature = typeof header === 'string' ? digestFromBase64(header, 'sha1') : null;
    if (signature === null) return null;
    const fields = yield* signedFields(request);
    if (fields === null) return null;
    for (const prefix of addresses(request)) {
      const verification = yield* signedByAny(keys, { prefix, body: fields }, [signature], 'sha1');
      if (verification !== null) return verification;
    }
    return null;
  };
}

/** What stands behind the address in the signed text; null when the body is not the one that was signed. */
function* signedFields({ headers, body, path }: SignedRequest): Generator<undefined, Buffer | null> {
  const bodySha256 = new URLSearchParams(path.split('?')[1]).get('bodySHA256');
  if (bodySha256 !== null) {
    const sent = digestFromHex(bodySha256);
    const hash = createHash('sha256');
    yield* updateInPieces(hash, body);
    return sent !== null && timingSafeEqual(sent, hash.digest()) ? empty : null;
  }
  if (!form.test(headers['content-type'] ?? '')) return body.length === 0 ? empty : null;
  // Forms of Twilio are small, and a large one takes too long to be read in one turn of the event loop.
  if (body.length > wholePayloadBytes) return null;
  const text = body.toString('utf8');
  if (text.split('&', maxFields + 1).length > maxFields) return null;
  // `getAll` goes through all fields: asked for each name, it would take the square of their number.
  const valuesByName = new Map<string, string | Set<string>>();
  new URLSearchParams(text).forEach((value, name) => {
    const known = valuesByName.get(name);
    if (known === undefined) valuesByName.set(name, value);
    else if (typeof known !== 'string') known.add(value);
    else if (known !== value) valuesByName.set(name, new Set([known, value]));
  });
  let signed = '';
  for (const name of [...valuesByName.keys()].sort()) {
    const values = valuesByName.get(name) ?? '';
    signed +=
      typeof values === 'string'
        ? name + values
        : [...values]
            .sort()
            .map((value) => name + value)
            .join('');
  }
  return Buffer.from(signed);
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
