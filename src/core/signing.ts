import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { PosthornError } from './errors.ts';
import { updateInPieces } from './hash-in-pieces.ts';

const secretPrefix = 'whsec_';

/** The key behind a Standard Webhooks secret (`whsec_` + base64). Throws INVALID_CONFIG when there is none in it. */
export function signingKey(secret: string): KeyObject {
  const bytes = Buffer.from(withoutPrefix(secret), 'base64');
  if (bytes.length === 0) throw new PosthornError('INVALID_CONFIG', 'a signing secret is not whsec_ followed by base64');
  return createSecretKey(bytes);
}

/** The Base64 of a Standard Webhooks secret. */
export function withoutPrefix(secret: string): string {
  return secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : secret;
}

/**
 * Value of `webhook-signature` for `<id>.<timestamp>.<body>` (Standard Webhooks 1.0, symmetric): one `v1,…` per key.
 * Keys are KeyObjects because those are five times faster than raw bytes.
 */
export function webhookSignature(keys: readonly KeyObject[], id: string, timestampSeconds: number, body: Uint8Array): string {
  const head = `${id}.${timestampSeconds}.`;
  return keys.map((key) => `v1,${createHmac('sha256', key).update(head).update(body).digest('base64')}`).join(' ');
}

/** The same of a large body, piece by piece. */
export function* webhookSignatureInPieces(
  keys: readonly KeyObject[],
  id: string,
  timestampSeconds: number,
  body: Uint8Array,
): Generator<undefined, string> {
  const signatures: string[] = [];
  for (const key of keys) {
    const hmac = createHmac('sha256', key).update(`${id}.${timestampSeconds}.`);
    yield* updateInPieces(hmac, body);
    signatures.push(`v1,${hmac.digest('base64')}`);
  }
  return signatures.join(' ');
}
