import type { IncomingHttpHeaders } from 'node:http';

export interface SignedRequest {
  headers: IncomingHttpHeaders;
  /** The exact bytes that came. */
  body: Buffer;
  nowMs: number;
  /** Path and query, as they came. */
  path: string;
  /** Address of the installation, such as `https://hooks.example.com`, if it is configured. */
  publicUrl: string | undefined;
}

/** What a signature covers: the text, and the bytes behind it. The same for every form of the request that the signature fits. */
export interface SignedContent {
  prefix: string;
  body: Buffer;
}

/** Of a request that a secret of the source vouches for. `signed` null: the sender showed the secret itself, which covers nothing. */
export interface Verification {
  signed: SignedContent | null;
}

/** Null when none of the source's secrets vouches for the request. Yields between two pieces of a large body. */
export type Verifier = (request: SignedRequest) => Generator<undefined, Verification | null>;
