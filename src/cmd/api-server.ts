import type { RequestListener, Server } from 'node:http';
import { createServer } from '../core/node-http.ts';
import { ingestServerOptions } from '../ingest/limits.ts';
import { answerClientError, answerMissingHost } from './client-error.ts';

/**
 * The server of the REST API and of ingest. Ingest has deadlines of its own for each request; these bound what never becomes one. What Node
 * would refuse with an empty answer is answered like every other error, or taken: an expectation that nobody knows may be ignored
 * (RFC 9110, section 10.1.1).
 */
export function createApiServer(handler: RequestListener): Server {
  const listener: RequestListener = (request, response) => {
    if (request.httpVersion === '1.1' && request.headers.host === undefined) answerMissingHost(request, response);
    else handler(request, response);
  };
  return createServer({ ...ingestServerOptions, requireHostHeader: false }, listener)
    .on('checkExpectation', listener)
    .on('clientError', answerClientError);
}
