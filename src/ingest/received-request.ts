import type { IncomingMessage } from 'node:http';
import type { FilterVerdict } from '../core/filter-evaluation.ts';
import type { SignedContent } from '../core/providers/descriptor.ts';

/** Facts about a large payload from outside of this process, which never parses it. */
export interface LargeEvaluation {
  /** By route: whether the event meets its filter, and why that is not certain. */
  verdicts: ReadonlyMap<string, FilterVerdict & { untried?: string }>;
  /** A document that has the texts at the requested paths, and nothing else. */
  document: object;
}

export interface ReceivedRequest {
  request: IncomingMessage;
  body: Buffer;
  /** As it was sent; empty: there is none. */
  query: string;
  receivedAtMs: number;
  /** The requested earliest time of the first attempts, in milliseconds since the epoch; null: at once. */
  notBeforeMs: number | null;
  /** Seconds after which the sender's messages expire; undefined: as configured at destinations. */
  expiresAfterSeconds: number | undefined;
  /** Null: the source has no secret, so signatures are not checked. */
  signatureValid: boolean | null;
  /** Validly signed content; null: none. */
  signed: SignedContent | null;
  /** Absent: the payload is small, and is parsed here. */
  evaluated?: LargeEvaluation;
}
