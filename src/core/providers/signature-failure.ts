/** Reasons why no secret of a source vouches for a request. */
export const signatureFailureReasons = [
  'header_missing',
  'header_malformed',
  'timestamp_malformed',
  'timestamp_outside_tolerance',
  'body_not_covered',
  'body_digest_mismatch',
  'body_is_handshake_token',
  'no_secret_matches',
  'no_secret',
  'secret_unreadable',
] as const;

export type SignatureFailureReason = (typeof signatureFailureReasons)[number];

/**
 * Why no secret of a source verifies a request, from the verifier of any provider. Holds nothing that was sent but how far its time is off: no
 * signature, no part of the body, no secret. The sender never gets it.
 */
export interface SignatureFailure {
  reason: SignatureFailureReason;
  /** The header that was expected, or could not be read, in lower case; of `no_secret_matches` where it has signatures of other versions alone. */
  header?: string;
  /** Seconds that a time outside the tolerance is behind the time of the server; negative: it is in the future. */
  secondsBehind?: number;
}

/** Where the HMAC was compared, in constant time, with what each secret makes. */
export const noSecretMatches: SignatureFailure = { reason: 'no_secret_matches' };

/** No secret matches because the header has signatures, and none of a version for which the source has a secret or key. */
export function noSecretOfVersion(header: string): SignatureFailure {
  return { ...noSecretMatches, header };
}

export function headerMissing(header: string): SignatureFailure {
  return { reason: 'header_missing', header };
}

export function headerMalformed(header: string): SignatureFailure {
  return { reason: 'header_malformed', header };
}
