import type { ServerResponse } from 'node:http';
import { z } from 'zod';
import { type ErrorCode, errorCodes, PosthornError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { AbandonedError } from '../../core/loop-turns.ts';
import { RightsPending } from '../../core/rights-pending.ts';
import { jsonContentType } from './media-types.ts';

/** Body of every error of the delivery configuration API. */
export const errorBody = z
  .object({
    error: z.string().describe('The reason phrase of the status.'),
    message: z.string().describe('What went wrong, in words.'),
    code: z.string().describe('Stable code; also in the header X-Error-Code.'),
  })
  .meta({ id: 'Error' });

/** Body of every error below `/cron`. */
export const textErrorBody = z.object({ error: z.string().describe('What went wrong, in words.') }).meta({ id: 'TextError' });

/** Body of every error of the webhook subscription API. */
export const webhookErrorBody = z
  .object({
    error: z.string().describe('Kind of the error.'),
    message: z.string().describe('What went wrong, in words.'),
    details: z.record(z.string(), z.array(z.string())).describe('The problems of each field; empty where the error concerns no field.'),
  })
  .meta({ id: 'WebhookError' });

/** Forms of an error body: with the code, with text alone (below `/cron`), or with details of fields (webhook subscription API). */
export type ErrorForm = 'code' | 'text' | 'webhook';

const textErrorPath = /^cron(?:\/|$)/;
const webhookErrorPath =
  /^(?:event-types|webhook-(?:applications|endpoints|subscriptions|events)|send-events?|outbound-messages|webhooks)(?:\/|$)/;

/** The form of the family that a path (below `/api` or an organization, without the first slash and the query) belongs to. */
export function errorFormOf(path: string): ErrorForm {
  if (textErrorPath.test(path)) return 'text';
  return webhookErrorPath.test(path) ? 'webhook' : 'code';
}

/** An error's body in the given form. */
export function errorIn(form: ErrorForm, { code, message, details }: Pick<PosthornError, 'code' | 'message' | 'details'>) {
  switch (form) {
    case 'text':
      return { error: message } satisfies z.input<typeof textErrorBody>;
    case 'webhook':
      return { error: webhookReason(code), message, details: details ?? {} } satisfies z.input<typeof webhookErrorBody>;
    case 'code':
      return { error: errorCodes[code].error, message, code } satisfies z.input<typeof errorBody>;
  }
}

function webhookReason(code: ErrorCode): string {
  if (code === 'QUOTA_EXCEEDED') return 'Monthly limit exceeded';
  if (code === 'APPLICATION_RATE_LIMITED') return 'Rate limited';
  if (code === 'QUEUE_FULL') return 'Queue full';
  const { status } = errorCodes[code];
  switch (status) {
    case 400:
      return 'Invalid input';
    case 401:
      return 'Unauthorized';
    case 403:
      return 'Forbidden';
    case 404:
      return 'Not found';
    case 405:
      return 'Method not allowed';
    case 408:
      return 'Request timeout';
    case 409:
      return 'Conflict';
    case 410:
      return 'Gone';
    case 412:
      return 'Precondition failed';
    case 413:
      return 'Payload too large';
    case 414:
      return 'URI too long';
    case 415:
      return 'Invalid Content-Type';
    case 429:
      return 'Rate limit exceeded';
    case 431:
      return 'Request header fields too large';
    case 500:
      return 'Internal error';
    case 503:
      return 'Service unavailable';
  }
}

const defaultRetryAfterSeconds = 1;

/**
 * Sends the thrown error, in the form of the family that `path` (without the query) belongs to; a response that has begun is aborted. What
 * is a defect or makes a service unavailable is logged.
 */
export function answerError(
  { logger }: { logger: Logger },
  { response, path }: { response: ServerResponse; path: string },
  thrown: unknown,
): void {
  const error = toPosthornError(thrown);
  const requestId = response.getHeader('X-Request-Id');
  if (error.code === 'INTERNAL') logger.error({ err: thrown, requestId, path }, 'an API request failed with an internal error');
  if (error.code === 'UNAVAILABLE' && error.cause !== undefined)
    logger.warn({ err: thrown, requestId, path }, 'an API request failed because a dependency is unavailable');
  if (response.headersSent) response.destroy();
  else sendError(response, error, path);
}

function sendError(response: ServerResponse, error: PosthornError, path: string): void {
  const { status } = errorCodes[error.code];
  response.statusCode = status;
  response.setHeader('X-Error-Code', error.code);
  if (status === 401) response.setHeader('WWW-Authenticate', 'Bearer');
  if (status === 429 || status === 503 || error.retryAfterSeconds !== undefined) {
    response.setHeader('Retry-After', String(Math.ceil(error.retryAfterSeconds ?? defaultRetryAfterSeconds)));
  }
  const below = path.replace(/^\/api\/(?:organizations\/[^/]+\/)?/, '');
  const body = JSON.stringify(errorIn(errorFormOf(below), error));
  response.setHeader('Content-Type', jsonContentType);
  response.setHeader('Content-Length', Buffer.byteLength(body));
  response.end(body);
}

/**
 * An error on the way to an operation, also by express and its body reader. Anything unexpected is INTERNAL, without its text; so is why
 * Redis or the API server does not answer, which names addresses.
 */
export function toPosthornError(error: unknown): PosthornError {
  if (error instanceof PosthornError) {
    if (error.code !== 'UNAVAILABLE' || error.cause === undefined || error instanceof RightsPending) return error;
    const options = { retryAfterSeconds: error.retryAfterSeconds, cause: error };
    return new PosthornError('UNAVAILABLE', 'A service that this needs does not respond; send the request again later.', options);
  }
  if (error instanceof AbandonedError)
    return new PosthornError('BAD_REQUEST', 'The client closed the connection before the response.', { cause: error });
  if (error instanceof URIError) return new PosthornError('NOT_FOUND', 'There is nothing at this path.', { cause: error });
  const { type, status, limit } = httpError.safeParse(error).data ?? {};
  if (status === 413) {
    const bound = limit === undefined ? 'too large' : `larger than ${limit} bytes`;
    return new PosthornError('PAYLOAD_TOO_LARGE', `The body is ${bound}.`, { cause: error });
  }
  if (status === 415)
    return new PosthornError('UNSUPPORTED_MEDIA_TYPE', 'Send the body uncompressed, or with Content-Encoding gzip, deflate or br.', {
      cause: error,
    });
  if (status === 400 && isZlibError(error))
    return new PosthornError('BAD_REQUEST', 'The body does not match its Content-Encoding.', { cause: error });
  if (status !== undefined && status < 500)
    return new PosthornError('BAD_REQUEST', `The request cannot be read (${type ?? status}).`, { cause: error });
  return new PosthornError('INTERNAL', 'The request failed with an internal error; find it in the logs by the request id.', {
    cause: error,
  });
}

/** Errors of express and of its body reader (`http-errors`). */
const httpError = z.looseObject({ status: z.int().min(400).max(599), type: z.string().optional(), limit: z.int().optional() });

function isZlibError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^(?:Z_|ZSTD_|ERR_)/.test(String(error.code));
}
