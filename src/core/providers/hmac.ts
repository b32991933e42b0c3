import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { updateInPieces } from '../hash-in-pieces.ts';
import type { SignatureScheme, SignedContent, Verification } from './descriptor.ts';
import { noSecretMatches, type SignatureFailure } from './signature-failure.ts';

type Algorithm = SignatureScheme['algorithm'];

/** How far the time in a signature may be from ours, either way. */
export const toleranceSeconds = 300;

const digestBytes: Record<Algorithm, number> = { sha1: 20, sha256: 32, sha512: 64 };
const hexDigits = /^[0-9a-fA-F]*$/;
const decimalSeconds = /^[0-9]{1,12}$/;

/** Key objects made once: a raw key costs five times as much per signature. Empty secrets are no secrets. */
export function hmacKeys(secrets: readonly (string | Buffer)[]): KeyObject[] {
  return secrets
    .filter((secret) => secret.length > 0)
    .map((secret) => createSecretKey(typeof secret === 'string' ? Buffer.from(secret) : secret));
}

/** The signed content, when the HMAC of it under one of the keys is one of the signatures; compared in constant time. */
export function* signedByAny(
  keys: readonly KeyObject[],
  signed: SignedContent,
  signatures: readonly Buffer[],
  algorithm: Algorithm = 'sha256',
): Generator<undefined, Verification | SignatureFailure> {
  const { prefix, body } = signed;
  let isSigned = false;
  for (const [i, key] of keys.entries()) {
    if (i > 0) yield;
    const hmac = createHmac(algorithm, key);
    if (prefix !== '') hmac.update(prefix);
    yield* updateInPieces(hmac, body);
    const expected = hmac.digest();
    for (const signature of signatures) {
      if (signature.length === expected.length && timingSafeEqual(signature, expected)) isSigned = true;
    }
  }
  return isSigned ? { signed } : noSecretMatches;
}

/** The bytes of a hexadecimal digest; null when it is not one. */
export function digestFromHex(text: string, algorithm: Algorithm = 'sha256'): Buffer | null {
  return text.length === 2 * digestBytes[algorithm] && hexDigits.test(text) ? Buffer.from(text, 'hex') : null;
}

/** The bytes of a digest in base64; null when it is not one. A digest has one text: with its padding, and zeros in the bits behind the last byte. */
export function digestFromBase64(text: string, algorithm: Algorithm = 'sha256'): Buffer | null {
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === digestBytes[algorithm] && bytes.toString('base64') === text ? bytes : null;
}

/** Error of the time in a header, in seconds since the epoch; null: it lies within the tolerance. */
export function timeFailure(header: string, seconds: string, nowMs: number): SignatureFailure | null {
  if (!decimalSeconds.test(seconds)) return { reason: 'timestamp_malformed', header };
  const secondsBehind = nowMs / 1000 - Number(seconds);
  return Math.abs(secondsBehind) <= toleranceSeconds
    ? null
    : { reason: 'timestamp_outside_tolerance', header, secondsBehind: Math.trunc(secondsBehind) };
}
