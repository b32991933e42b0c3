import type { Socket } from 'node:net';
import { type ErrorCode, errorCodes } from '../core/errors.ts';

const lingerMs = 1000;

const messages = {
  HEADERS_TOO_LARGE: 'The request line and the headers are more than 16 KiB together.',
  REQUEST_TIMEOUT: 'The request did not arrive in time.',
  BAD_REQUEST: 'This is no HTTP request.',
} satisfies Partial<Record<ErrorCode, string>>;

/**
 * Answers what Node's HTTP parser refuses before any handler sees it, in the form of all errors; for `clientError` of a server.
 * The rest of what the client sends is read for a second, so that it can read the answer.
 */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const code = codeOf(error);
  const { status, error: reason } = errorCodes[code];
  const body = JSON.stringify({ error: reason, message: messages[code], code });
  const head = [
    `HTTP/1.1 ${status} ${reason}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Error-Code: ${code}`,
    'Connection: close',
  ];
  socket.removeAllListeners('data').on('data', () => {});
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  setTimeout(() => socket.destroy(), lingerMs).unref();
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
