import type { SignatureScheme, Verifier } from './descriptor.ts';
import { digestFromBase64, digestFromHex, hmacKeys, signedByAny } from './hmac.ts';
import { headerMalformed, headerMissing } from './signature-failure.ts';

/** The HMAC of the body, and of nothing else, is in `scheme.header`, after `scheme.prefix`. */
export function bodySignatureVerifier(scheme: SignatureScheme, secrets: readonly string[]): Verifier {
  const keys = hmacKeys(secrets);
  const { algorithm, header, encoding, prefix } = scheme;
  const digestFrom = encoding === 'hex' ? digestFromHex : digestFromBase64;
  return function* ({ headers, body }) {
    const value = headers[header];
    if (typeof value !== 'string') return headerMissing(header);
    const signature = value.startsWith(prefix) ? digestFrom(value.slice(prefix.length), algorithm) : null;
    return signature === null ? headerMalformed(header) : yield* signedByAny(keys, { prefix: '', body }, [signature], algorithm);
  };
}
