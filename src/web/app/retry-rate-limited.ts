import { ApiError } from '../api/client.ts';

/** Maximum total wait of a request, if the API requests it. */
const maxWaitMs = 60_000;
const usualWaitMs = 1000;

/** Retries as long as the API answers 429, after its delay, for a minute at most. Throws ApiError. */
export async function retryRateLimited<Result>(ask: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
  let waitedMs = 0;
  for (;;) {
    try {
      return await ask();
    } catch (thrown) {
      if (!(thrown instanceof ApiError) || thrown.status !== 429) throw thrown;
      const waitMs = Math.max(thrown.retryAfterMs ?? 0, usualWaitMs);
      waitedMs += waitMs;
      if (waitedMs > maxWaitMs) throw thrown;
      await pause(waitMs, signal);
    }
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener('abort', () => resolve(), { once: true });
  await promise;
  clearTimeout(timer);
  signal.throwIfAborted();
}

/** A thrown error as a response of the API. */
export function apiErrorOf(thrown: unknown): ApiError {
  return thrown instanceof ApiError ? thrown : new ApiError(String(thrown), { status: 0, code: 'UNKNOWN' });
}
