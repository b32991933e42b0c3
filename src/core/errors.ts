/**
 * The one registry of error codes. A code is at once the facade's `code` and `X-Error-Code`, a condition reason's
 * origin, and the `code` field of a log line. `status` is the HTTP status of the facade's response, `error` the text
 * of the body's `error` field.
 */
export const errorCodes = {
  BAD_REQUEST: { status: 400, error: 'Bad Request' },
  MALFORMED_JSON: { status: 400, error: 'Bad Request' },
  UNKNOWN_FIELD: { status: 400, error: 'Bad Request' },
  VALIDATION_FAILED: { status: 400, error: 'Bad Request' },
  INVALID_QUERY: { status: 400, error: 'Bad Request' },
  INVALID_URL: { status: 400, error: 'Bad Request' },
  INVALID_SOURCE: { status: 400, error: 'Bad Request' },
  INVALID_CONFIG: { status: 400, error: 'Bad Request' },
  CREDENTIALS_REQUIRED: { status: 400, error: 'Bad Request' },
  UNAUTHORIZED: { status: 401, error: 'Unauthorized' },
  INVALID_SIGNATURE: { status: 401, error: 'Unauthorized' },
  FORBIDDEN: { status: 403, error: 'Forbidden' },
  SOURCE_DISABLED: { status: 403, error: 'Forbidden' },
  IP_NOT_ALLOWED: { status: 403, error: 'Forbidden' },
  NOT_FOUND: { status: 404, error: 'Not Found' },
  RESOURCE_NOT_FOUND: { status: 404, error: 'Not Found' },
  METHOD_NOT_ALLOWED: { status: 405, error: 'Method Not Allowed' },
  REQUEST_TIMEOUT: { status: 408, error: 'Request Timeout' },
  CONFLICT: { status: 409, error: 'Conflict' },
  ALREADY_EXISTS: { status: 409, error: 'Conflict' },
  DUPLICATE_ROUTE: { status: 409, error: 'Conflict' },
  FIELD_MANAGED: { status: 409, error: 'Conflict' },
  IN_USE: { status: 409, error: 'Conflict' },
  PAYLOAD_NOT_FOUND: { status: 409, error: 'Conflict' },
  IDEMPOTENCY_CONFLICT: { status: 409, error: 'Conflict' },
  EXPIRED: { status: 410, error: 'Gone' },
  PRECONDITION_FAILED: { status: 412, error: 'Precondition Failed' },
  PAYLOAD_TOO_LARGE: { status: 413, error: 'Payload Too Large' },
  URI_TOO_LONG: { status: 414, error: 'URI Too Long' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, error: 'Unsupported Media Type' },
  QUOTA_EXCEEDED: { status: 429, error: 'Too Many Requests' },
  QUEUE_FULL: { status: 429, error: 'Too Many Requests' },
  RATE_LIMITED: { status: 429, error: 'Too Many Requests' },
  APPLICATION_RATE_LIMITED: { status: 429, error: 'Too Many Requests' },
  HEADERS_TOO_LARGE: { status: 431, error: 'Request Header Fields Too Large' },
  INTERNAL: { status: 500, error: 'Internal Server Error' },
  UNAVAILABLE: { status: 503, error: 'Service Unavailable' },
} as const;

export type ErrorCode = keyof typeof errorCodes;

export interface ErrorOptions {
  /** Per field (dotted path) the complaints about it. */
  details?: Record<string, string[]>;
  /** Seconds after which trying again makes sense; becomes `Retry-After`. */
  retryAfterSeconds?: number;
  cause?: unknown;
}

/** Every error that crosses a module boundary on purpose. Anything else is a defect and answers 500. */
export class PosthornError extends Error {
  readonly code: ErrorCode;
  readonly details: Record<string, string[]> | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.name = 'PosthornError';
    this.code = code;
    this.details = options.details;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  get status(): number {
    return errorCodes[this.code].status;
  }
}

/** INVALID_QUERY about one parameter; `complaint` follows its name: `must be given once`. */
export function invalidParameter(parameter: string, complaint: string): PosthornError {
  return new PosthornError('INVALID_QUERY', `Query: ${parameter} ${complaint}.`, { details: { [parameter]: [complaint] } });
}

export function isPosthornError<C extends ErrorCode>(error: unknown, ...codes: C[]): error is PosthornError & { code: C } {
  return error instanceof PosthornError && (codes.length === 0 || (codes as ErrorCode[]).includes(error.code));
}
