import { type KeyObject, verify } from 'node:crypto';
import type { JobOwner } from '../fair-scheduler.ts';
import { type KeyAndSignature, type LargeWork, verifyLarge } from '../large-ed25519.ts';
import { loopTurns } from '../loop-turns.ts';
import { wholePayloadBytes } from '../payload-sizes.ts';
import type { SignedContent, Verification } from './descriptor.ts';
import { noSecretMatches, type SignatureFailure } from './signature-failure.ts';

/** More signatures of one request are ignored: each costs one verification with each key. */
export const maxAsymmetricSignatures = 4;

/** The signed content, when one of the keys made one of its signatures. `owner`: schedules the verification of large contents. */
export function* signedByAnyPublicKey(
  keys: readonly KeyObject[],
  signed: SignedContent,
  signatures: readonly Buffer[],
  owner: JobOwner,
): Generator<Promise<void> | undefined, Verification | SignatureFailure> {
  const pairs = signatures.slice(0, maxAsymmetricSignatures).flatMap((signature) => keys.map((key) => ({ key, signature })));
  if (signed.body.length > wholePayloadBytes) return (yield* areSignedElsewhere(signed, pairs, owner)) ? { signed } : noSecretMatches;
  const content = contentOf(signed);
  for (const [i, { key, signature }] of pairs.entries()) {
    if (i > 0) yield;
    if (verify(null, content, key, signature)) return { signed };
  }
  return noSecretMatches;
}

/** Ed25519 has no pieces, so a large content is verified in a thread. */
function* areSignedElsewhere(
  { prefix: head, body }: SignedContent,
  pairs: readonly KeyAndSignature[],
  owner: JobOwner,
): Generator<Promise<void>, boolean> {
  if (pairs.length === 0) return false;
  let isSigned = false;
  const verified = async (): Promise<void> => {
    const inTurns: LargeWork['inTurns'] = (pieces) => loopTurns.of(owner.organization, owner.part).run(pieces);
    isSigned = await verifyLarge({ head, body }, pairs, { ...owner, inTurns });
  };
  yield verified();
  return isSigned;
}

function contentOf({ prefix, body }: SignedContent): Buffer {
  return Buffer.concat([Buffer.from(prefix), body]);
}
