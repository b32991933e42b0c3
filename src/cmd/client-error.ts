import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { answerHeaders } from '../core/answer-headers.ts';
import { type ErrorCode, errorCodes } from '../core/errors.ts';
import { requestIdFor } from '../core/request-id.ts';

const lingerMs = 1000;

const messages = {
  HEADERS_TOO_LARGE: 'The request line and the headers are more than 16 KiB together.',
  REQUEST_TIMEOUT: 'The request did not arrive in time.',
  BAD_REQUEST: 'This is no HTTP request.',
} satisfies Partial<Record<ErrorCode, string>>;

/**
 * Returns what Node's HTTP parser refuses before any handler sees it, in the form of all errors; for `clientError` of a server.
 * The rest of what the client sends is read for a second, so that it can read the answer.
 */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const code = codeOf(error);
  const { status, reason, headers, body } = answerOf(code, messages[code], requestIdFor(undefined));
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.removeAllListeners('data').on('data', () => {});
  socket.end(`${[`HTTP/1.1 ${status} ${reason}`, ...head].join('\r\n')}\r\n\r\n${body}`);
  setTimeout(() => socket.destroy(), lingerMs).unref();
}

/** Error of the head of a request that the parser accepts; null: none. */
export function headProblem({ httpVersion, headers, rawHeaders }: IncomingMessage): string | null {
  // RFC 9112, section 3.2.
  if (httpVersion === '1.1' && headers.host === undefined) return 'A request of HTTP/1.1 needs a Host header.';
  if (hostHeaders(rawHeaders) > 1) return 'A request has one Host header only.';
  const { 'transfer-encoding': coding } = headers;
  // The body would be taken for what it is not (RFC 9112, section 6.1).
  return coding === undefined || coding.trim().toLowerCase() === 'chunked' ? null : 'Transfer-Encoding may be chunked only.';
}

/** How many there are: Node keeps the first one alone, and a proxy may have routed by another. */
function hostHeaders(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === 'host') count++;
  }
  return count;
}

/** Responds to a request with an invalid head, in the error format of the API. */
export function answerHeadProblem(request: IncomingMessage, response: ServerResponse, problem: string): void {
  const requestId = requestIdFor(request.headers['x-request-id']);
  const { status, headers, body } = answerOf('BAD_REQUEST', problem, requestId);
  response.writeHead(status, headers).end(body);
}

function answerOf(code: ErrorCode, message: string, requestId: string) {
  const { status, error: reason } = errorCodes[code];
  // The path is unknown, so the body has the members of all forms (../facade/http/error-response.ts).
  const body = JSON.stringify({ error: reason, message, code, details: {} });
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    ...Object.fromEntries(answerHeaders),
    'X-Request-Id': requestId,
    'X-Error-Code': code,
    Connection: 'close',
  };
  return { status, reason, headers, body };
}

function codeOf({ code }: NodeJS.ErrnoException): keyof typeof messages {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return 'HEADERS_TOO_LARGE';
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 'REQUEST_TIMEOUT';
    default:
      return 'BAD_REQUEST';
  }
}
