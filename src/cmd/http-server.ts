import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { AddressList } from '../core/address-list.ts';
import { answerHeaders } from '../core/answer-headers.ts';
import { createServer } from '../core/node-http.ts';
import { ingestServerOptions } from '../ingest/limits.ts';
import { answerClientError, answerHeadProblem, headProblem } from './client-error.ts';
import { boundConnections, type ConnectionLimits, defaultConnectionLimits } from './connection-limits.ts';
import { defaultLingeringLimits, type LingeringLimits, lingeringClose } from './lingering-close.ts';

export interface HttpServerOptions {
  limits?: Partial<ConnectionLimits & { lingering: Partial<LingeringLimits> }>;
  /** CIDRs of the proxies that connect for many clients: the share of an address does not hold for them. Default: none. */
  trustedProxies?: readonly string[];
  /** Below which everything is served, too; see `takeOffBasePath`. Default: empty. */
  basePath?: string;
  /** Whether a request to this target is answered by a handler that sets the headers of `answerHeaders` itself. Default: none is. */
  setsAnswerHeaders?: (target: string) => boolean;
  /**
   * Whether a client that ends its side of the connection after its request still receives the response. Its handlers do not learn then that a client has
   * closed the connection before they write to it. Default: false.
   */
  takesHalfClosed?: boolean;
}

/** Host, which is neither empty nor behind a user, and what follows it. */
const absoluteForm = /^https?:\/\/([^/?#@\s]+)([/?].*)?$/i;

/**
 * Makes every HTTP server of the program. Ingest has deadlines of its own for each request; these bound what never becomes one. What Node
 * would refuse with an empty answer is answered like every other error, or accepted: an unknown expectation may be ignored
 * (RFC 9110, section 10.1.1). Handlers see targets in origin form, without the base path. Every answer has the headers of `answerHeaders`, unless its handler sets others.
 * A client that writes its whole body before it reads still receives the response to a refused request.
 */
export function createHttpServer(
  handler: RequestListener,
  { limits, trustedProxies = [], basePath = '', setsAnswerHeaders = () => false, takesHalfClosed = false }: HttpServerOptions = {},
): Server {
  const linger = lingeringClose({ ...defaultLingeringLimits, ...limits?.lingering });
  const listener: RequestListener = (request, response) => {
    connections.onRequest(request.socket);
    linger(request);
    const problem = headProblem(request);
    if (problem !== null) return answerHeadProblem(request, response, problem);
    toOriginForm(request);
    takeOffBasePath(request, basePath);
    if (!setsAnswerHeaders(request.url ?? '')) for (const [name, value] of answerHeaders) response.setHeader(name, value);
    handler(request, response);
  };
  const server = createServer({ ...ingestServerOptions, requireHostHeader: false }, listener)
    .on('checkExpectation', listener)
    .on('clientError', answerClientError);
  // A property of servers that is not in the types of Node.
  Object.assign(server, { httpAllowHalfOpen: takesHalfClosed });
  const connections = boundConnections(server, { ...defaultConnectionLimits, ...limits }, new AddressList(trustedProxies));
  return server;
}

/**
 * Gives a request whose target is in absolute form, as clients of proxies send it, a target in origin form. The host in the target replaces that of
 * the `Host` header (RFC 9112, section 3.2.2). The text of path and query is kept: signatures cover it. Other targets stay.
 */
function toOriginForm(request: IncomingMessage): void {
  const target = request.url ?? '';
  if (target.startsWith('/')) return;
  const [, host, rest = '/'] = absoluteForm.exec(target) ?? [];
  if (host === undefined) return;
  request.url = rest.startsWith('/') ? rest : `/${rest}`;
  request.headers.host = host;
}

/**
 * Takes the base path off the target of a request that has it, so that a proxy may strip it or leave it. The rest of the text is kept: signatures cover
 * it. `basePath`: as `/posthorn`; empty: none.
 */
export function takeOffBasePath(request: IncomingMessage, basePath: string): void {
  const target = request.url ?? '';
  if (basePath === '' || !target.startsWith(basePath)) return;
  const rest = target.slice(basePath.length);
  if (rest.startsWith('/')) request.url = rest;
  else if (rest === '' || rest.startsWith('?')) request.url = `/${rest}`;
}
