import type { IncomingHttpHeaders } from 'node:http';

export interface SignedRequest {
  headers: IncomingHttpHeaders;
  /** The exact bytes that came. */
  body: Buffer;
  nowMs: number;
}

/** Whether one of the source's secrets has signed the request. */
export type Verifier = (request: SignedRequest) => boolean;
