import type { Logger } from '../core/logger.ts';
import { nobody } from '../core/providers/custom.ts';
import type { Verifier } from '../core/providers/descriptor.ts';
import { providers } from '../core/providers/providers.ts';
import type { SourceRecord } from '../core/records.ts';
import type { Keyring } from '../core/sealing.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';

/**
 * The check of a source's signatures, with the secret before the present one until that runs out; null when the source
 * has no secret and takes everything. Throws when no secret of the source opens.
 */
export function sourceVerifier(source: SourceRecord, keyring: Keyring, logger: Logger): Verifier | null {
  if (source.signingSecrets.length === 0) return source.rejectInvalidSignatures ? nobody : null;
  const { verifier } = providers[source.provider];
  const verify = verifier(open(source, source.signingSecrets, keyring, logger), source.verification);
  const { previousSigningSecrets: previous } = source;
  if (previous === undefined) return verify;
  const verifyPrevious = verifier(open(source, previous.sealed, keyring, logger), source.verification);
  return function* (request) {
    const verification = yield* verify(request);
    if (verification !== null || request.nowMs >= previous.validUntilMs) return verification;
    return yield* verifyPrevious(request);
  };
}

function open(source: SourceRecord, envelopes: readonly string[], keyring: Keyring, logger: Logger): string[] {
  const context = recordSealingContext(source.org, 'source', source.id, 'signingSecrets');
  const secrets: string[] = [];
  let failure: unknown;
  for (const envelope of envelopes) {
    try {
      secrets.push(keyring.open(envelope, context));
    } catch (error) {
      failure = error;
      logger.error({ err: error, sourceId: source.id }, 'a signing secret of a source cannot be decrypted');
    }
  }
  if (secrets.length === 0) throw failure;
  return secrets;
}
