import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';

/** Longer heads of interim responses, and incomplete ones that are longer, pass as they are: what undici is strict about, it refuses. */
const maxHeldBytes = 16_384;
/** Per response. A receiver that sends more keeps the event loop busy until the deadline. */
const maxInterimHeads = 100;
const [lineFeed, carriageReturn, space, tab, letterC, two, five] = [0x0a, 0x0d, 0x20, 0x09, 0x63, 0x32, 0x35];
const beginning = Buffer.from('HTTP/1.', 'latin1');
const blankLine = '\n\r\n';
const statusAt = 'HTTP/1.1 '.length;
/** 101 ends HTTP on its connection: it is no interim response. */
const interim = /^1(?!01)\d\d$/;

/**
 * Makes connections that hand responses to undici in the form that it takes:
 * - `100 Continue` is dropped. A client has to take that also when it has not asked for it (RFC 9110, section 15.2.1), and undici ends the connection.
 * - Lines of a head that is folded are joined, which a client has to do (RFC 9112, section 5.2), and lines may end without a carriage return (section 2.2).
 * - Of a `Content-Length` that comes several times with one value, one remains (section 6.3). undici reads `2` and `2` as 22.
 *
 * Without that the receiver has taken the request, and the attempt has failed all the same.
 */
export function readingLeniently(connector: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connector(options, (...[error, socket]) => (error === null ? callback(null, withPlainHeads(socket)) : callback(error, null)));
}

/** Checks the heads of responses; bodies pass unchanged. */
function withPlainHeads(socket: Socket): Socket {
  const write = socket.write.bind(socket);
  const read = socket.read.bind(socket);
  let awaitsHead = false;
  let held: Buffer | null = null;
  let interimHeads = 0;
  return Object.assign(socket, {
    write: (data: string | Uint8Array, encoding?: BufferEncoding, ended?: (error?: Error | null) => void): boolean => {
      // undici writes heads of requests as text, bodies as bytes, and between chunks text that begins with the end of a line.
      if (typeof data === 'string' && data.charCodeAt(0) !== carriageReturn) {
        awaitsHead = true;
        interimHeads = 0;
      }
      return write(data, encoding, ended);
    },
    read: (size?: number): Buffer | null => {
      for (;;) {
        const chunk: Buffer | null = read(size);
        if (!awaitsHead || chunk === null) return chunk;
        if (held === null && isPlainResponse(chunk)) {
          awaitsHead = false;
          return chunk;
        }
        const found: Found = held === null ? plainHeads(chunk, 0) : plainHeads(Buffer.concat([held, chunk]), held.length);
        interimHeads += found.interimHeads;
        if (interimHeads > maxInterimHeads) {
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

/** Whether a chunk begins with a complete head of a final response that undici takes as it is: nearly every one does. */
function isPlainResponse(chunk: Buffer): boolean {
  const status = chunk[statusAt] ?? 0;
  if (status < two || status > five || !mayBeHead(chunk, 0)) return false;
  const end = headEnd(chunk, 0);
  return end >= 0 && isPlainHead(chunk, 0, end);
}

/** `held`: an incomplete head, which is held back until its rest arrives; null: there is none. */
interface Found {
  /** Passed or dropped. */
  interimHeads: number;
  passed: Buffer;
  held: Buffer | null;
}

/** The first `searched` bytes do not contain the end of a head. */
function plainHeads(bytes: Buffer, searched: number): Found {
  const passed: Buffer[] = [];
  for (let at = 0, interimHeads = 0; ; interimHeads++) {
    const end = mayBeHead(bytes, at) ? headEnd(bytes, Math.max(at, searched - blankLine.length + 1)) : -1;
    if (end < 0) {
      const rest = bytes.subarray(at);
      if (rest.length > maxHeldBytes || !mayBeHead(bytes, at)) return { interimHeads, passed: joined(passed, rest), held: null };
      return { interimHeads, passed: joined(passed), held: rest };
    }
    const status = bytes.toString('latin1', at + statusAt, at + statusAt + 3);
    const isInterim = interim.test(status);
    const isPlain = isPlainHead(bytes, at, end);
    const isTooLong = isInterim && end - at > maxHeldBytes;
    if (isTooLong || (!isInterim && isPlain)) return { interimHeads, passed: joined(passed, bytes.subarray(at)), held: null };
    if (status !== '100') passed.push(isPlain ? bytes.subarray(at, end) : plainHead(bytes.toString('latin1', at, end)));
    if (!isInterim) return { interimHeads, passed: joined(passed, bytes.subarray(end)), held: null };
    at = end;
  }
}

function joined(pieces: readonly Buffer[], last?: Buffer): Buffer {
  if (last === undefined) return Buffer.concat(pieces);
  return pieces.length === 0 ? last : Buffer.concat([...pieces, last]);
}

function mayBeHead(bytes: Buffer, start: number): boolean {
  const length = Math.min(beginning.length, bytes.length - start);
  for (let at = 0; at < length; at++) if (bytes[start + at] !== beginning[at]) return false;
  return true;
}

/** Behind the first blank line from `from` on, which begins behind a line feed; -1: there is none. */
function headEnd(bytes: Buffer, from: number): number {
  for (let at = bytes.indexOf(lineFeed, from); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) {
    if (bytes[at + 1] === lineFeed) return at + 2;
    if (bytes[at + 1] === carriageReturn && bytes[at + 2] === lineFeed) return at + 3;
  }
  return -1;
}

/** Whether undici takes a complete head as it is. */
function isPlainHead(bytes: Buffer, start: number, end: number): boolean {
  let lengths = 0;
  let isFirst = true;
  for (let at = bytes.indexOf(lineFeed, start); at < end - 1; at = bytes.indexOf(lineFeed, at + 1)) {
    if (bytes[at - 1] !== carriageReturn || bytes[at + 1] === lineFeed) return false;
    const next = bytes[at + 1] ?? 0;
    if (!isFirst && (next === space || next === tab)) return false;
    if ((next | 0x20) === letterC && isLength(bytes, at + 1) && (++lengths > 1 || hasComma(bytes, at + 1))) return false;
    isFirst = false;
  }
  return true;
}

const lengthName = 'content-length:';

function isLength(bytes: Buffer, at: number): boolean {
  for (let k = 0; k < lengthName.length; k++) {
    const byte = bytes[at + k] ?? 0;
    const isCapital = byte >= 0x41 && byte <= 0x5a;
    if ((isCapital ? byte | 0x20 : byte) !== lengthName.charCodeAt(k)) return false;
  }
  return true;
}

function hasComma(bytes: Buffer, at: number): boolean {
  const end = bytes.indexOf(lineFeed, at);
  return bytes.subarray(at, end < 0 ? bytes.length : end).includes(',');
}

function plainHead(head: string): Buffer {
  const [first = '', ...fields] = head.replace(/\r?\n\r?\n$/, '').split(/\r?\n/);
  const lines: string[] = [];
  for (const field of fields) {
    if (/^[ \t]/.test(field) && lines.length > 0) lines.push(`${lines.pop()?.trimEnd()} ${field.trim()}`);
    else lines.push(field);
  }
  const lengths = lines.filter((line) => line.toLowerCase().startsWith(lengthName));
  const values = new Set(lengths.flatMap((line) => line.slice(lengthName.length).split(',')).map((value) => value.trim()));
  const [value = ''] = values;
  const isOne = values.size === 1 && /^\d+$/.test(value);
  const kept = isOne ? [...lines.filter((line) => !lengths.includes(line)), `${lengthName} ${value}`] : lines;
  return Buffer.from(`${[first, ...kept].join('\r\n')}\r\n\r\n`, 'latin1');
}
