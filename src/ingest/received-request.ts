import type { IncomingMessage } from 'node:http';
import type { SignedContent } from './providers/signed-request.ts';

export interface ReceivedRequest {
  request: IncomingMessage;
  body: Buffer;
  /** As it was sent; empty: there is none. */
  query: string;
  receivedAtMs: number;
  /** Null: the source has no secret, so signatures are not looked at. */
  signatureValid: boolean | null;
  /** What a valid signature covers; null: there is none, or it covers nothing. */
  signed: SignedContent | null;
}
