import { inOnePiece } from '../../src/core/in-one-piece.ts';
import type { SourceRecord } from '../../src/core/records.ts';
import type { SignedRequest, Verifier } from '../../src/ingest/providers/signed-request.ts';
import { providerVerifier } from '../../src/ingest/providers/verifier.ts';

/** A provider's check of requests to an installation without a public address. */
export function verifierOf(
  provider: SourceRecord['provider'],
  secrets: readonly string[],
  verification?: SourceRecord['verification'],
): (request: Omit<SignedRequest, 'path' | 'publicUrl'> & Partial<SignedRequest>) => boolean {
  const verify: Verifier = providerVerifier({ provider, ...(verification !== undefined && { verification }) }, secrets);
  return (request) => inOnePiece(verify({ path: '/ingest/acme/source', publicUrl: undefined, ...request })) !== null;
}
