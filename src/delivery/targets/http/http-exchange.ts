import type { Dispatcher } from 'undici';
import type { Clock } from '../../../core/clock.ts';

export interface HttpRequest {
  origin: string;
  path: string;
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Names and values in turn. */
  headers: string[];
  /** null: the request has none. */
  body: Buffer | null;
}

export type HttpResult = { type: 'response'; status: number; retryAfter: string | null; body: Buffer } | { type: 'error'; error: Error };

/** The deadline of an exchange passed. */
export class DeadlineError extends Error {}

const mostBodyBytes = 16_384;
const bodyCut = new Error('the rest of the body is of no interest');

/**
 * One HTTP exchange under one deadline, which covers connecting, headers and body. At most 16 KiB of the body are read; the
 * status counts even when more would come. Redirects are not followed and nothing is decompressed. Never rejects; an
 * aborted signal ends it with an error.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: HttpRequest,
  { timeoutMs, clock, signal }: { timeoutMs: number; clock: Clock; signal: AbortSignal },
): Promise<HttpResult> {
  return new Promise((resolve) => {
    let controller: Dispatcher.DispatchController | null = null;
    let result: HttpResult | null = null;
    let status = 0;
    let retryAfter: string | null = null;
    let size = 0;
    const chunks: Buffer[] = [];

    const end = (ending: HttpResult): void => {
      if (result !== null) return;
      result = ending;
      cancelDeadline();
      signal.removeEventListener('abort', stop);
      resolve(ending);
    };
    const fail = (error: Error): void => {
      end({ type: 'error', error });
      controller?.abort(error);
    };
    const respond = (): void => end({ type: 'response', status, retryAfter, body: Buffer.concat(chunks) });
    const cancelDeadline = clock.after(timeoutMs, () => fail(new DeadlineError(`no complete answer within ${timeoutMs} ms`)));
    const stop = (): void => fail(new Error('the worker stops'));
    signal.addEventListener('abort', stop);

    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(started) {
        controller = started;
        // Ended while it waited for a connection: nothing may be sent any more.
        if (result !== null) started.abort(bodyCut);
      },
      onResponseStart(_, statusCode, headers) {
        if (statusCode < 200) return;
        status = statusCode;
        const value = headers['retry-after'];
        retryAfter = typeof value === 'string' ? value : null;
      },
      onResponseData(current, chunk) {
        chunks.push(size + chunk.length > mostBodyBytes ? chunk.subarray(0, mostBodyBytes - size) : chunk);
        size += chunk.length;
        if (size < mostBodyBytes) return;
        respond();
        current.abort(bodyCut);
      },
      onResponseEnd: respond,
      onResponseError: (_, error) => end({ type: 'error', error }),
    };
    try {
      dispatcher.dispatch(request, handler);
    } catch (error) {
      end({ type: 'error', error: error instanceof Error ? error : new Error(String(error)) });
    }
  });
}
