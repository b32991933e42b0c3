import type { Dispatcher } from 'undici';
import type { Clock } from '../../../core/clock.ts';
import { dispatchTraced, ExchangeTrace, failedConnection, tracedRequestStarts } from './exchange-trace.ts';
import type { SentSecrets } from './sent-secrets.ts';

export interface HttpRequest {
  origin: string;
  path: string;
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Alternating names and values. */
  headers: string[];
  /** null: the request has none. */
  body: Buffer | null;
  /** Secrets to mask in its quotes. */
  secrets: SentSecrets;
}

/** Without the secrets of the request, wherever the receiver repeats them. */
export type HttpResult = HttpAnswer | { type: 'error'; error: Error; traced?: TracedExchange };

export interface HttpAnswer {
  type: 'response';
  status: number;
  retryAfter: string | null;
  /** The receiver requests no further attempt (`x-posthorn-retry: no`). */
  asksForNoRetry?: true;
  body: Buffer;
  /** Error of the receiver in a response with a success status. */
  complaint?: string;
  traced?: TracedExchange;
}

/** Data of an exchange over HTTP; not masked. */
export interface TracedExchange {
  request: HttpRequest;
  trace: ExchangeTrace;
}

/** The deadline of an exchange passed. */
export class DeadlineError extends Error {}

/** Response header: `no` requests no further attempt at this message. */
const retryHeader = 'x-posthorn-retry';
const maxBodyBytes = 16_384;
const bodyCut = new Error('the rest of the body is of no interest');

/**
 * One HTTP exchange under one deadline, which covers connecting, headers and body. At most 16 KiB of the body are read; the
 * status counts even when more would come. Redirects are not followed and nothing is decompressed. Never rejects; an
 * aborted signal ends it with an error. Replies enter the program here and nowhere else, so that they are masked here.
 *
 * A receiver may close a connection that waits for the next request. What it has closed before the exchange began is not used; when it
 * resets one before anything of the request is written, the request is sent once more. Never after: it may have arrived.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: HttpRequest,
  { timeoutMs, clock, signal }: { timeoutMs: number; clock: Clock; signal: AbortSignal },
): Promise<HttpResult> {
  return new Promise((resolve) => {
    let controller: Dispatcher.DispatchController | null = null;
    let isSentAgain = false;
    let result: HttpResult | null = null;
    let status = 0;
    let retryAfter: string | null = null;
    let asksForNoRetry = false;
    let size = 0;
    const chunks: Buffer[] = [];
    const trace = new ExchangeTrace(clock.now());
    const traced = { request, trace };

    const end = (ending: HttpResult): void => {
      if (result !== null) return;
      result = ending;
      trace.endedAtMs = clock.now();
      trace.responseBytes = size;
      cancelDeadline();
      signal.removeEventListener('abort', stop);
      resolve(masked(ending, request, size >= maxBodyBytes));
    };
    const fail = (error: Error): void => {
      end({ type: 'error', error, traced });
      controller?.abort(error);
    };
    const respond = (): void =>
      end({ type: 'response', status, retryAfter, ...(asksForNoRetry && { asksForNoRetry }), body: Buffer.concat(chunks), traced });
    const cancelDeadline = clock.after(timeoutMs, () => fail(new DeadlineError(`no complete answer within ${timeoutMs} ms`)));
    const stop = (): void => fail(new Error('the worker stops'));
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop);

    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(started) {
        controller = started;
        // Ended while it waited for a connection: nothing may be sent any more.
        if (result !== null) started.abort(bodyCut);
        else tracedRequestStarts(trace, clock.now());
      },
      onResponseStart(_, statusCode, headers) {
        if (statusCode < 200) return;
        status = statusCode;
        trace.firstByteAtMs = clock.now();
        trace.responseHeaders = headers;
        // A receiver and the proxy before it may both send one.
        const asked = headers['retry-after'];
        retryAfter = (Array.isArray(asked) ? asked[0] : asked) ?? null;
        const wish = headers[retryHeader];
        if (wish !== undefined) asksForNoRetry = isNo(wish);
      },
      onResponseData(current, chunk) {
        chunks.push(size + chunk.length > maxBodyBytes ? chunk.subarray(0, maxBodyBytes - size) : chunk);
        size += chunk.length;
        if (size < maxBodyBytes) return;
        respond();
        current.abort(bodyCut);
      },
      onResponseEnd: respond,
      onResponseError(_, error) {
        // Only a request that has been started is ever written.
        if (controller !== null || isSentAgain || !hasFailedWhenRead(error)) {
          trace.connection ??= failedConnection(error);
          return end({ type: 'error', error, traced });
        }
        isSentAgain = true;
        send();
      },
    };
    // undici yields before it takes a connection again, but in a callback of I/O that is not enough for it to read what has come meanwhile.
    const send = (): void => {
      setImmediate(() => {
        if (result !== null) return;
        try {
          dispatchTraced(trace, dispatcher, request, handler);
        } catch (error) {
          end({ type: 'error', error: error instanceof Error ? error : new Error(String(error)), traced });
        }
      });
    };
    send();
  });
}

/** A receiver may send it more than once. */
function isNo(value: string | string[]): boolean {
  return [value].flat().some((each) => each.trim().toLowerCase() === 'no');
}

function masked(result: HttpResult, request: HttpRequest, isCut: boolean): HttpResult {
  if (result.type === 'error') {
    const message = request.secrets.maskedIn(result.error.message, { sent: request });
    if (message !== result.error.message) result.error.message = message;
    return result;
  }
  if (result.body.length === 0) return result;
  const text = result.body.toString();
  const shown = request.secrets.maskedIn(text, { isCut, sent: request });
  return shown === text ? result : { ...result, body: Buffer.from(shown) };
}

/** An established TCP connection: reset, or given up for dead. A reset in the TLS handshake counts too, and is retried once. */
function hasFailedWhenRead(error: Error): boolean {
  return 'syscall' in error && error.syscall === 'read';
}
