import type { Response } from 'express';
import { z } from 'zod';
import { errorCodes, PosthornError } from '../core/errors.ts';

/** Body of every error (API document, "Errors"). */
export const errorBody = z
  .object({
    error: z.string().describe('The reason phrase of the status.'),
    message: z.string().describe('What went wrong, in words.'),
    code: z.string().describe('Stable code; also in the header X-Error-Code.'),
  })
  .meta({ id: 'Error' });

/** Body of every error below `/cron` (API document, "Errors"). */
export const textErrorBody = z.object({ error: z.string().describe('What went wrong, in words.') }).meta({ id: 'TextError' });

const textErrorPath = /^\/api\/(?:organizations\/[^/]+\/)?cron(?:[/?]|$)/;

const defaultRetryAfterSeconds = 1;

/** Answers with an error in the form of the family that `path` (with the query) belongs to. */
export function sendError(response: Response, error: PosthornError, path: string): void {
  const { status, error: reason } = errorCodes[error.code];
  response.set('X-Error-Code', error.code);
  if (status === 401) response.set('WWW-Authenticate', 'Bearer');
  if (status === 429 || status === 503 || error.retryAfterSeconds !== undefined) {
    response.set('Retry-After', String(Math.ceil(error.retryAfterSeconds ?? defaultRetryAfterSeconds)));
  }
  response.status(status);
  if (textErrorPath.test(path)) response.json({ error: error.message } satisfies z.input<typeof textErrorBody>);
  else response.json({ error: reason, message: error.message, code: error.code } satisfies z.input<typeof errorBody>);
}

/** What is thrown on the way to an operation, also by express and its body reader. Anything unexpected is INTERNAL, without its text. */
export function toPosthornError(error: unknown): PosthornError {
  if (error instanceof PosthornError) return error;
  if (error instanceof URIError) return new PosthornError('NOT_FOUND', 'There is nothing at this path.', { cause: error });
  const { type, status } = httpError.safeParse(error).data ?? {};
  if (status === 413) return new PosthornError('PAYLOAD_TOO_LARGE', 'The body is too large.', { cause: error });
  if (status === 415) return new PosthornError('UNSUPPORTED_MEDIA_TYPE', 'The encoding of the body is not supported.', { cause: error });
  if (status !== undefined && status < 500)
    return new PosthornError('BAD_REQUEST', `The request cannot be read (${type ?? status}).`, { cause: error });
  return new PosthornError('INTERNAL', 'Something went wrong on our side; the request id finds it in the logs.', { cause: error });
}

/** Errors of express and of its body reader (`http-errors`). */
const httpError = z.looseObject({ status: z.int().min(400).max(599), type: z.string().optional() });
