import { createHash, hash } from 'node:crypto';
import { updateInPieces } from '../core/hash-in-pieces.ts';

const known = new WeakMap<Buffer, string>();

/** The SHA-256 of a body in hexadecimal. */
export function bodyDigest(body: Buffer): string {
  return known.get(body) ?? hash('sha256', body, 'hex');
}

/** Computes it in chunks for a large body, before it is read. */
export function* digestInPieces(body: Buffer): Generator<undefined, void> {
  const digest = createHash('sha256');
  yield* updateInPieces(digest, body);
  known.set(body, digest.digest('hex'));
}
