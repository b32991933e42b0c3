import { PosthornError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { nobody } from '../core/providers/custom.ts';
import { isVerified, type Verifier } from '../core/providers/descriptor.ts';
import { providers } from '../core/providers/providers.ts';
import type { SignatureFailure } from '../core/providers/signature-failure.ts';
import type { SourceRecord } from '../core/records.ts';
import type { Keyring } from '../core/sealing.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';
import { maxListedSecrets } from '../core/standard-webhooks-secrets.ts';

/**
 * The check of a source's signatures, with the secret before the present one until that runs out; null when the source
 * has no secret and takes everything. Throws SigningSecretsUnreadable when no secret of the source opens.
 */
export function sourceVerifier(source: SourceRecord, keyring: Keyring, logger: Logger): Verifier | null {
  const { signingSecrets, publicKeys = [], rejectInvalidSignatures } = source;
  if (signingSecrets.length + publicKeys.length === 0) return rejectInvalidSignatures ? nobody : null;
  const { verifier } = providers[source.provider];
  const present = open(source, { sealed: signingSecrets, publicKeys }, keyring, logger);
  const verify = verifier(present.secrets, source.verification);
  const { previousSigningSecrets: previous } = source;
  if (previous === undefined) return present.areAll ? verify : blamingUnread(verify);
  const earlier = open(source, previous, keyring, logger);
  const verifyPrevious = verifier(earlier.secrets, source.verification);
  const verifyBoth: Verifier = function* (request) {
    const result = yield* verify(request);
    if (isVerified(result) || request.nowMs >= previous.validUntilMs) return result;
    const earlierResult = yield* verifyPrevious(request);
    // Where the present one has no secret for the version of the signature, the failure of the earlier one may be more precise.
    const isOfEarlier = result.reason === 'no_secret_matches' && result.header !== undefined;
    return isVerified(earlierResult) || isOfEarlier ? earlierResult : result;
  };
  return present.areAll && earlier.areAll ? verifyBoth : blamingUnread(verifyBoth);
}

/** No secret of the source opens: `failure` is reported for every request. */
export class SigningSecretsUnreadable extends PosthornError {
  readonly failure: SignatureFailure = { reason: 'secret_unreadable' };
  readonly source: SourceRecord;

  constructor(source: SourceRecord, cause: unknown) {
    super('INTERNAL', 'no signing secret of the source can be decrypted', { cause });
    this.source = source;
  }
}

/** A secret that does not open may be the one that a request is signed with. */
function blamingUnread(verify: Verifier): Verifier {
  return function* (request) {
    const result = yield* verify(request);
    return !isVerified(result) && result.reason === 'no_secret_matches' ? { reason: 'secret_unreadable' } : result;
  };
}

function open(
  source: SourceRecord,
  { sealed, publicKeys: listed = [] }: Pick<NonNullable<SourceRecord['previousSigningSecrets']>, 'sealed' | 'publicKeys'>,
  keyring: Keyring,
  logger: Logger,
): { secrets: string[]; areAll: boolean } {
  const context = recordSealingContext(source.org, 'source', source.id, 'signingSecrets');
  // Records of earlier releases may have more.
  const [envelopes, publicKeys] = [sealed.slice(0, maxListedSecrets), listed.slice(0, maxListedSecrets)];
  const secrets: string[] = [...publicKeys];
  let failure: unknown;
  for (const envelope of envelopes) {
    try {
      secrets.push(keyring.open(envelope, context));
    } catch (error) {
      failure = error;
      logger.error({ err: error, sourceId: source.id }, 'a signing secret of a source cannot be decrypted');
    }
  }
  if (secrets.length === 0) throw new SigningSecretsUnreadable(source, failure);
  return { secrets, areAll: secrets.length === envelopes.length + publicKeys.length };
}
