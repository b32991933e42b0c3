import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Caller } from './caller.ts';

/** A request to the API, and what becomes known of it on the way to its answer. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  /** Without the query. */
  readonly path: string;
  /** As in the URL, without the question mark. */
  readonly query: string;
  /** Resolves when all that the request has begun has ended, which may be after its client has gone. */
  readonly ended: Promise<void>;
  /** Null: not yet authenticated, or not at all. */
  caller: Caller | null;
  /** Id of the session that the request has shown; null: none. */
  sessionId: string | null;
  /** Null: there is none, or none yet. */
  operationId: string | null;
}
