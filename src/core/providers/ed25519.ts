import { type KeyObject, verify } from 'node:crypto';
import { verifyLarge } from '../large-ed25519.ts';
import { loopTurns } from '../loop-turns.ts';
import { wholePayloadBytes } from '../payload-sizes.ts';
import { Turns } from '../turns.ts';
import type { SignedContent, Verification } from './descriptor.ts';
import { noSecretMatches, type SignatureFailure } from './signature-failure.ts';

/** More signatures of one request are not looked at: each costs one verification with each key. */
export const maxAsymmetricSignatures = 4;

/** Verifications of large contents, organizations in turn. One runs at a time, because it has copies of its content. */
const verifications = new Turns<() => Promise<void>>(1, () => performance.now());

/** What was signed, when one of the keys made one of the signatures of it. `organization`: in whose turns large contents are verified. */
export function* signedByAnyPublicKey(
  keys: readonly KeyObject[],
  signed: SignedContent,
  signatures: readonly Buffer[],
  organization: string,
): Generator<Promise<void> | undefined, Verification | SignatureFailure> {
  const pairs = signatures.slice(0, maxAsymmetricSignatures).flatMap((signature) => keys.map((key) => ({ key, signature })));
  const isLarge = signed.body.length > wholePayloadBytes;
  const content = isLarge ? null : contentOf(signed);
  for (const [i, pair] of pairs.entries()) {
    if (content === null) {
      if (yield* isSignedElsewhere(signed, pair, organization)) return { signed };
      continue;
    }
    if (i > 0) yield;
    if (verify(null, content, pair.key, pair.signature)) return { signed };
  }
  return noSecretMatches;
}

interface Pair {
  key: KeyObject;
  signature: Buffer;
}

/** Ed25519 has no pieces, so a large content is verified in a thread. */
function* isSignedElsewhere({ prefix: head, body }: SignedContent, pair: Pair, organization: string): Generator<Promise<void>, boolean> {
  let isSigned = false;
  yield new Promise<void>((resolve, reject) => {
    const verified = async (): Promise<void> => {
      isSigned = await verifyLarge({ head, body }, pair, (work) => loopTurns.of(organization).run(work));
    };
    verifications.add(organization, () => verified().then(resolve, reject), body.length);
    beginNext();
  });
  return isSigned;
}

function beginNext(): void {
  const turn = verifications.next();
  if (turn === null) return;
  turn.start();
  void turn.item().finally(() => {
    turn.end();
    beginNext();
  });
}

function contentOf({ prefix, body }: SignedContent): Buffer {
  return Buffer.concat([Buffer.from(prefix), body]);
}
