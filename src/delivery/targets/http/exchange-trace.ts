import { subscribe } from 'node:diagnostics_channel';
import { Socket } from 'node:net';
import type { buildConnector, Dispatcher } from 'undici';
import type { Clock } from '../../../core/clock.ts';

/** When the steps of a connection ended, by the clock. Null: the step has not ended. */
export class ConnectionTrace {
  readonly beganAtMs: number;
  readonly hasTls: boolean;
  lookupBeganAtMs: number | null = null;
  lookedUpAtMs: number | null = null;
  connectedAtMs: number | null = null;
  securedAtMs: number | null = null;
  /** The address that is tried or connected to, with its port. */
  peerAddress: string | null = null;
  requests = 0;

  constructor(beganAtMs: number, hasTls: boolean) {
    this.beganAtMs = beganAtMs;
    this.hasTls = hasTls;
  }
}

/** Data recorded during an exchange: numbers and references alone, because most exchanges succeed and need no more. */
export class ExchangeTrace {
  readonly beganAtMs: number;
  sentAtMs: number | null = null;
  firstByteAtMs: number | null = null;
  endedAtMs: number | null = null;
  /** Request line and headers as they were written; null: nothing was. */
  head: string | null = null;
  responseHeaders: Readonly<Record<string, string | string[] | undefined>> | null = null;
  responseBytes = 0;
  connection: ConnectionTrace | null = null;
  isReused = false;

  constructor(beganAtMs: number) {
    this.beganAtMs = beganAtMs;
  }
}

const bySocket = new WeakMap<Socket, ConnectionTrace>();
const byError = new WeakMap<Error, ConnectionTrace>();

// Both are set only while a call runs that does not wait: undici connects within `dispatch`, and writes the head of a request right after `onRequestStart`.
let dispatching: ExchangeTrace | null = null;
let starting: ExchangeTrace | null = null;

subscribe('undici:client:sendHeaders', (message) => {
  const trace = starting;
  starting = null;
  if (trace === null || typeof message !== 'object' || message === null) return;
  if ('headers' in message && typeof message.headers === 'string') trace.head = message.headers;
  const connection = 'socket' in message && message.socket instanceof Socket ? bySocket.get(message.socket) : undefined;
  if (connection === undefined) return;
  trace.connection = connection;
  trace.isReused = connection.requests > 0;
  connection.requests++;
});

/** Dispatches the request of an exchange; a connection that this opens is recorded as that of the exchange. */
export function dispatchTraced(
  trace: ExchangeTrace,
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  handler: Dispatcher.DispatchHandler,
): void {
  dispatching = trace;
  try {
    dispatcher.dispatch(request, handler);
  } finally {
    dispatching = null;
  }
}

/** To be called in `onRequestStart` of a request that is written next. */
export function tracedRequestStarts(trace: ExchangeTrace, nowMs: number): void {
  trace.sentAtMs = nowMs;
  starting = trace;
}

/** The connection whose failure an error is; null: none. */
export function failedConnection(error: Error): ConnectionTrace | null {
  return byError.get(error) ?? null;
}

/** A connection that begins now. `ended` is to be called with what came of it. */
export function tracedConnection(
  { protocol }: Pick<buildConnector.Options, 'protocol'>,
  { clock, callback }: { clock: Clock; callback: buildConnector.Callback },
): { trace: ConnectionTrace; ended: buildConnector.Callback } {
  const trace = new ConnectionTrace(clock.now(), protocol === 'https:');
  if (dispatching !== null) dispatching.connection = trace;
  const ended: buildConnector.Callback = (...[error, socket]) => {
    if (error !== null) {
      byError.set(error, trace);
      return callback(error, null);
    }
    const nowMs = clock.now();
    trace.connectedAtMs ??= nowMs;
    if (trace.hasTls) trace.securedAtMs = nowMs;
    bySocket.set(socket, trace);
    return callback(null, socket);
  };
  return { trace, ended };
}

/** Records connect events of a socket. `opened`: the result of an undici connector, which its types omit. */
export function traceConnecting(trace: ConnectionTrace, opened: unknown, clock: Clock): void {
  if (!(opened instanceof Socket)) return;
  opened.on('connectionAttempt', (address: string, port: number) => {
    trace.peerAddress = addressAndPort(address, port);
  });
  opened.once('connect', () => {
    trace.connectedAtMs = clock.now();
    if (opened.remoteAddress !== undefined) trace.peerAddress = addressAndPort(opened.remoteAddress, opened.remotePort ?? 0);
  });
}

export function addressAndPort(address: string, port: number): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}
