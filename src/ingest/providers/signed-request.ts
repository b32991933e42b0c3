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

/** Whether one of the source's secrets has signed the request. */
export type Verifier = (request: SignedRequest) => boolean;
