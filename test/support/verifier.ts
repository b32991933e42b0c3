import { inOnePiece } from '../../src/core/in-one-piece.ts';
import type { SignedRequest, Verifier } from '../../src/core/providers/descriptor.ts';
import { providers } from '../../src/core/providers/providers.ts';
import type { SourceRecord } from '../../src/core/records.ts';

/** A provider's check of requests to an installation without a public address. */
export function verifierOf(
  provider: SourceRecord['provider'],
  secrets: readonly string[],
  verification?: SourceRecord['verification'],
): (request: Omit<SignedRequest, 'path' | 'publicUrl'> & Partial<SignedRequest>) => boolean {
  const verify: Verifier = providers[provider].verifier(secrets, verification);
  return (request) => inOnePiece(verify({ path: '/ingest/acme/source', publicUrl: undefined, ...request })) !== null;
}
