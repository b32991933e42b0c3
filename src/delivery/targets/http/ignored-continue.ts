import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';

/** Longer heads of interim responses are left to undici, which refuses them. */
const maxInterimBytes = 16_384;
/** Of one response; a receiver that goes on with them keeps the event loop busy until the deadline. */
const maxInterimHeads = 100;
const lineEnd = '\r'.charCodeAt(0);
const one = '1'.charCodeAt(0);
const statusAt = 'HTTP/1.1 '.length;
const statusLength = 'HTTP/1.1 100'.length;
/** 101 ends HTTP on its connection: it is no interim response. */
const interim = /^HTTP\/1\.[01] 1(?!01)\d\d$/;

/**
 * Makes connections from which `100 Continue` is dropped. A client must accept it unrequested (RFC 9110, section 15.2.1), and undici
 * ends the connection, though the receiver has taken the request.
 */
export function ignoringContinue(connector: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connector(options, (...[error, socket]) => (error === null ? callback(null, withoutContinue(socket)) : callback(error, null)));
}

/** Of a response only the first bytes are parsed, and all heads before the last one where it begins with others: bodies pass unchanged. */
function withoutContinue(socket: Socket): Socket {
  const write = socket.write.bind(socket);
  const read = socket.read.bind(socket);
  let awaitsHead = false;
  let held: Buffer | null = null;
  let heads = 0;
  return Object.assign(socket, {
    write: (data: string | Uint8Array, encoding?: BufferEncoding, ended?: (error?: Error | null) => void): boolean => {
      // undici writes heads of requests as text, bodies as bytes, and between chunks text that begins with the end of a line.
      if (typeof data === 'string' && data.charCodeAt(0) !== lineEnd) [awaitsHead, heads] = [true, 0];
      return write(data, encoding, ended);
    },
    read: (size?: number): Buffer | null => {
      for (;;) {
        const chunk: Buffer | null = read(size);
        if (!awaitsHead || chunk === null) return chunk;
        if (held === null && chunk.length > statusAt && chunk[statusAt] !== one) {
          awaitsHead = false;
          return chunk;
        }
        const found: Found = withoutInterim(held === null ? chunk : Buffer.concat([held, chunk]));
        heads += found.heads;
        if (heads > maxInterimHeads) {
          socket.destroy(new Error(`the response has more than ${maxInterimHeads} interim responses`));
          return null;
        }
        held = found.held;
        awaitsHead = held !== null;
        if (found.passed.length > 0) return found.passed;
      }
    },
  });
}

/** `held`: an incomplete head, which is held back until its rest arrives; null: there is none. */
interface Found {
  /** Of interim responses, passed or dropped. */
  heads: number;
  passed: Buffer;
  held: Buffer | null;
}

function withoutInterim(bytes: Buffer): Found {
  const passed: Buffer[] = [];
  for (let at = 0, heads = 0; ; heads++) {
    const status = bytes.toString('latin1', at, at + statusLength);
    const end = bytes.indexOf('\r\n\r\n', at);
    const isTooLong = (end === -1 ? bytes.length : end) - at > maxInterimBytes;
    if (isTooLong || !mayBeInterim(status)) return { heads, passed: Buffer.concat([...passed, bytes.subarray(at)]), held: null };
    if (end === -1) return { heads, passed: Buffer.concat(passed), held: bytes.subarray(at) };
    if (!status.endsWith('100')) passed.push(bytes.subarray(at, end + 4));
    at = end + 4;
  }
}

function mayBeInterim(status: string): boolean {
  if (status.length === statusLength) return interim.test(status);
  return ['HTTP/1.1 1', 'HTTP/1.0 1'].some((beginning) => beginning.startsWith(status.slice(0, beginning.length)));
}
