import type { RequestListener, Server } from 'node:http';
import { AddressList } from '../core/address-list.ts';
import { createServer } from '../core/node-http.ts';
import { ingestServerOptions } from '../ingest/limits.ts';
import { answerHeaders } from './answer-headers.ts';
import { takeOffBasePath } from './base-path.ts';
import { answerClientError, answerMissingHost } from './client-error.ts';
import { boundConnections, type ConnectionLimits, defaultConnectionLimits } from './connection-limits.ts';
import { defaultLingeringLimits, type LingeringLimits, lingeringClose } from './lingering-close.ts';
import { toOriginForm } from './origin-form.ts';

export interface HttpServerOptions {
  limits?: Partial<ConnectionLimits & { lingering: Partial<LingeringLimits> }>;
  /** CIDRs of the proxies that connect for many clients: the share of an address does not hold for them. Default: none. */
  trustedProxies?: readonly string[];
  /** Below which everything is served, too; see `takeOffBasePath`. Default: empty. */
  basePath?: string;
}

/**
 * Makes every HTTP server of the program. Ingest has deadlines of its own for each request; these bound what never becomes one. What Node
 * would refuse with an empty answer is answered like every other error, or taken: an expectation that nobody knows may be ignored
 * (RFC 9110, section 10.1.1). Handlers see targets in origin form, without the base path. Every answer has the headers of `answerHeaders`, unless its handler sets others.
 * A client that writes its whole body before it reads still receives the response to a refused request.
 */
export function createHttpServer(handler: RequestListener, { limits, trustedProxies = [], basePath = '' }: HttpServerOptions = {}): Server {
  const linger = lingeringClose({ ...defaultLingeringLimits, ...limits?.lingering });
  const listener: RequestListener = (request, response) => {
    connections.onRequest(request.socket);
    linger(request);
    for (const [name, value] of answerHeaders) response.setHeader(name, value);
    if (request.httpVersion === '1.1' && request.headers.host === undefined) return answerMissingHost(request, response);
    toOriginForm(request);
    takeOffBasePath(request, basePath);
    handler(request, response);
  };
  const server = createServer({ ...ingestServerOptions, requireHostHeader: false }, listener)
    .on('checkExpectation', listener)
    .on('clientError', answerClientError);
  const connections = boundConnections(server, { ...defaultConnectionLimits, ...limits }, new AddressList(trustedProxies));
  return server;
}
