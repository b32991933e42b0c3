import { inOnePiece } from '../../src/core/in-one-piece.ts';
import { isVerified, type SignedRequest, type Verification, type Verifier } from '../../src/core/providers/descriptor.ts';
import { providers } from '../../src/core/providers/providers.ts';
import type { SignatureFailure } from '../../src/core/providers/signature-failure.ts';
import type { SourceRecord } from '../../src/core/records.ts';

type CheckedRequest = Omit<SignedRequest, 'organization' | 'path' | 'publicUrl'> & Partial<SignedRequest>;

/** A provider's check of requests to an installation without a public address. */
export function verifierOf(...args: Parameters<typeof resultsOf>): (request: CheckedRequest) => boolean {
  const resultOf = resultsOf(...args);
  return (request) => isVerified(resultOf(request));
}

/** The result of the check for them. */
export function resultsOf(
  provider: SourceRecord['provider'],
  secrets: readonly string[],
  verification?: SourceRecord['verification'],
): (request: CheckedRequest) => Verification | SignatureFailure {
  const verify: Verifier = providers[provider].verifier(secrets, verification);
  return (request) => inOnePiece(verify({ organization: 'org_a', path: '/ingest/acme/source', publicUrl: undefined, ...request }));
}
