import type { Dispatcher } from 'undici';
import type { Clock } from '../../../core/clock.ts';
import { errorType } from '../http/error-type.ts';
import { DeadlineError, type HttpResult } from '../http/http-exchange.ts';
import type { SentSecrets } from '../http/sent-secrets.ts';
import type { ObjectWriter, StoredObject } from './object-writer.ts';
import { Transport } from './transport.ts';

/** One deadline for all objects of a batch; well below the time for which a worker may hold it. */
export const uploadTimeoutMs = 30_000;
const atATime = 4;
const maxOwnWords = 200;

export interface UploadContext {
  dispatcher: Dispatcher;
  /** Secrets to mask in its quotes. */
  secrets: SentSecrets;
  clock: Clock;
  /** Breaks the upload off. */
  signal: AbortSignal;
  timeoutMs?: number;
}

/** `code` is the store's word for what is wrong, such as NoSuchBucket. */
export type UploadResult = HttpResult & { code: string | null };

/**
 * Writes all objects under one deadline; the first failure ends it. Never rejects. What the answer holds of the error is the status and
 * the store's code for it: its text may quote what was sent.
 */
export async function upload(
  store: ObjectWriter,
  objects: readonly StoredObject[],
  { dispatcher, secrets, clock, signal, timeoutMs = uploadTimeoutMs }: UploadContext,
): Promise<UploadResult> {
  const ending = new AbortController();
  const stop = (): void => ending.abort(new Error('the worker stops'));
  const cancelDeadline = clock.after(timeoutMs, () => ending.abort(new DeadlineError(`the store has not taken it within ${timeoutMs} ms`)));
  signal.addEventListener('abort', stop);
  const queue = [...objects];
  const work = async (): Promise<UploadResult | null> => {
    for (let object = queue.shift(); object !== undefined; object = queue.shift()) {
      const failure = await put(store, object, new Transport(dispatcher, ending.signal));
      if (failure === null) continue;
      queue.length = 0;
      return failure;
    }
    return null;
  };
  try {
    const ended = new Promise<UploadResult>((resolve) => {
      ending.signal.addEventListener('abort', () => resolve({ type: 'error', error: ending.signal.reason, code: null }));
    });
    if (signal.aborted) stop();
    const all = Promise.all(Array.from({ length: Math.min(atATime, objects.length) }, work));
    const failure = await Promise.race([all.then((results) => results.find((result) => result !== null) ?? null), ended]);
    return (failure && masked(failure, secrets)) ?? { type: 'response', status: 200, retryAfter: null, body: Buffer.alloc(0), code: null };
  } finally {
    cancelDeadline();
    signal.removeEventListener('abort', stop);
    ending.abort();
  }
}

function masked(failure: UploadResult, secrets: SentSecrets): UploadResult {
  if (failure.type === 'error') failure.error.message = secrets.maskedIn(failure.error.message);
  return { ...failure, code: failure.code === null ? null : secrets.maskedIn(failure.code) };
}

/** Writes one object. Returns the failed result; null: the store has taken it. */
async function put(store: ObjectWriter, object: StoredObject, transport: Transport): Promise<UploadResult | null> {
  try {
    await store.put(object, transport);
    return null;
  } catch (error) {
    const code = codeOf(error);
    if (transport.error !== null) return { type: 'error', error: told(transport.error), code };
    const { last } = transport;
    if (last !== null && last.status >= 300) return { type: 'response', ...last, body: Buffer.alloc(0), code };
    return { type: 'error', error: new Error(`the upload failed${code === null ? '' : ` (${code})`}${ownWords(error)}`), code };
  }
}

/** Messages of connection errors are Node's and ours, and contain nothing of what was sent. */
function told(error: Error): Error {
  if (errorType(error) !== 'network' || 'code' in error) return error;
  return new Error('the connection to the store failed');
}

/** Returns the message of an error of the SDK itself, without a response of the store, such as missing credentials. */
function ownWords(error: unknown): string {
  const message = member(error, 'message');
  const [line = ''] = typeof message === 'string' ? message.split('\n') : [];
  return line === '' ? '' : `: ${line.slice(0, maxOwnWords)}`;
}

function codeOf(error: unknown): string | null {
  const words = [...['code', 'Code', 'name'].map((field) => member(error, field)), ...googleWords(error)];
  return (
    words.find((word): word is string => typeof word === 'string' && /^[A-Za-z][A-Za-z0-9_.-]{1,63}$/.test(word) && word !== 'Error') ??
    null
  );
}

/** Google's SDK hides what the store calls the error in the answer; where no token is given that is a word of OAuth. */
function googleWords(error: unknown): unknown[] {
  const told = member(member(member(error, 'response'), 'data'), 'error');
  const reasons = member(told, 'errors');
  return [Array.isArray(reasons) ? member(reasons[0], 'reason') : undefined, member(told, 'status'), told];
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
