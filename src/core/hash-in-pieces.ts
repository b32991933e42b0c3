import type { Hash, Hmac } from 'node:crypto';

/** About 2 ms of work. */
export const pieceBytes = 1_048_576;

/** Puts the bytes into a hash, and yields between two pieces of them; of a body of one piece never. */
export function* updateInPieces(hash: Hash | Hmac, body: Uint8Array): Generator<undefined, void> {
  for (let first = 0; first < body.length; first += pieceBytes) {
    if (first > 0) yield;
    hash.update(body.subarray(first, first + pieceBytes));
  }
}
