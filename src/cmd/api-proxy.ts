import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream';
import { AddressList } from '../core/address-list.ts';
import { clientAddress, clientNetwork } from '../core/client-address.ts';
import { PosthornError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { fromLoopbackHeader, isFromLoopback } from '../core/loopback.ts';
import { Agent, request } from '../core/node-http.ts';
import { OpenShares } from '../core/open-shares.ts';
import { answerError } from '../facade/http/error-response.ts';
import { answerRequestId } from '../facade/http/request-id-header.ts';
import { requestTarget } from '../facade/http/request-target.ts';

/** Requests that the API has not answered yet; more are answered 503. */
const maxUnderWay = 4096;
/** Most open requests of one client address, or of one /64 of IPv6: a quarter of all. */
const maxPerClient = 1024;
const maxIdleConnections = 64;

/**
 * Headers that are about one connection (RFC 9110, section 7.6.1). What else a client names in `Connection` is passed on all the same: nobody but the
 * API reads it, and a header that says where the body ends must not get lost.
 */
const ofConnection = new Set(['connection', 'expect', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade']);

export interface ApiProxy {
  /** `boundAddress`: where the server that has the request listens. Absent or null: unknown, and no request is from loopback. */
  listener(incoming: IncomingMessage, outgoing: ServerResponse, boundAddress?: string | null): void;
  /** Ends its connections. */
  close(): void;
}

/**
 * Passes requests on to the api process that listens on this unix socket, and its answers back; bodies stream in both directions. The last address
 * in `X-Forwarded-For` is that of the client. Answers 503 in the form of the API while that process is down, and when it has too many requests already, in
 * all or of the client. `trustedProxies`: CIDRs of proxies whose `X-Forwarded-For` is trusted. The header `fromLoopbackHeader` marks a request
 * that `isFromLoopback`.
 */
export function apiProxy(
  socketPath: string,
  { logger, trustedProxies = [] }: { logger: Logger; trustedProxies?: readonly string[] },
): ApiProxy {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: maxIdleConnections });
  const proxies = new AddressList(trustedProxies);
  const shares = new OpenShares({ all: maxUnderWay, ofOwner: maxPerClient });
  const fail = (incoming: IncomingMessage, outgoing: ServerResponse, error: PosthornError): void => {
    answerRequestId(incoming, outgoing);
    answerError({ logger }, { response: outgoing, path: requestTarget(incoming.url ?? '').path }, error);
  };
  const listener: ApiProxy['listener'] = (incoming, outgoing, boundAddress = null) => {
    if (shares.open >= maxUnderWay) return fail(incoming, outgoing, unavailable('The API has too many requests under way.'));
    const client = clientNetwork(clientAddress(incoming.socket.remoteAddress ?? '', incoming.headers['x-forwarded-for'], proxies));
    if (!shares.take(client)) return fail(incoming, outgoing, unavailable('The API has too many requests of this address under way.'));
    const { method, url: path } = incoming;
    let passed: ClientRequest;
    try {
      passed = request({ socketPath, agent, method, path, headers: requestHeaders(incoming, boundAddress) });
    } catch {
      shares.giveBack(client);
      // The parser takes a few characters that a client must not send.
      return fail(incoming, outgoing, new PosthornError('BAD_REQUEST', 'The path or a header contains a character that is not allowed.'));
    }
    // The server may leave half-closed connections open; the API stops working for a client that has gone.
    const hangUp = (): void => {
      outgoing.destroy();
      passed.destroy();
    };
    incoming.socket.setMaxListeners(0).once('end', hangUp);
    outgoing.once('close', () => {
      incoming.socket.off('end', hangUp);
      shares.giveBack(client);
      // The rest of a refused body is read and discarded: unread it would keep its sender from the response, and from its next request.
      incoming.unpipe(passed).resume();
      passed.destroy();
    });
    passed.once('response', (answer) => passBack(answer, outgoing));
    passed.on('error', () => {
      if (outgoing.headersSent) outgoing.destroy();
      else if (!outgoing.destroyed) fail(incoming, outgoing, unavailable('The API does not answer; send the request again later.'));
    });
    if (hasBody(incoming)) incoming.pipe(passed);
    else passed.end();
  };
  return { listener, close: () => agent.destroy() };
}

function passBack(answer: IncomingMessage, outgoing: ServerResponse): void {
  // Its client has gone: nothing can be written to it.
  if (outgoing.destroyed) return void answer.destroy();
  // Announces that no further request is read on this connection.
  if (answer.headers.connection?.toLowerCase() === 'close') outgoing.setHeader('Connection', 'close');
  outgoing.writeHead(answer.statusCode ?? 502, answer.statusMessage, endToEnd(answer));
  pipeline(answer, outgoing, () => undefined);
}

function requestHeaders(incoming: IncomingMessage, boundAddress: string | null): Record<string, string | string[]> {
  const { headers, headersDistinct, socket } = incoming;
  const { [fromLoopbackHeader]: _, ...sent } = endToEnd(incoming);
  const isChunked = headers['transfer-encoding'] !== undefined;
  return {
    host: 'localhost',
    ...sent,
    ...(isFromLoopback(incoming, boundAddress) && { [fromLoopbackHeader]: '1' }),
    'x-forwarded-for': [...(headersDistinct['x-forwarded-for'] ?? []), socket.remoteAddress ?? 'unknown'].join(', '),
    // Whatever the method: Node would send the body of a DELETE with no end.
    ...(isChunked && { 'transfer-encoding': 'chunked' }),
  };
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || headers['content-length'] !== undefined;
}

function endToEnd({ headersDistinct }: IncomingMessage): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {};
  for (const [name, values = []] of Object.entries(headersDistinct)) {
    const [value] = values;
    if (value !== undefined && !ofConnection.has(name)) kept[name] = values.length === 1 ? value : values;
  }
  return kept;
}

function unavailable(message: string): PosthornError {
  return new PosthornError('UNAVAILABLE', message, { retryAfterSeconds: 1 });
}
