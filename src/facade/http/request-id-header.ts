import type { IncomingMessage, ServerResponse } from 'node:http';
import { requestIdFor } from '../../core/request-id.ts';

/** Echoes `X-Request-Id` when it is harmless, makes one otherwise. Returns which. */
export function answerRequestId(request: IncomingMessage, response: ServerResponse): string {
  const id = requestIdFor(request.headers['x-request-id']);
  response.setHeader('X-Request-Id', id);
  return id;
}
