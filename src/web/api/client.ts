import { basePath } from './base.ts';
import type { Operations } from './schema.ts';

export type OperationName = keyof Operations;
export type Answer<Name extends OperationName> = Operations[Name]['answer'];

export interface Input<Name extends OperationName> {
  path?: Operations[Name]['path'];
  query?: Operations[Name]['query'];
  body?: Operations[Name]['body'];
  /** The body as JSON text instead of `body`, where numbers must keep their digits. */
  bodyText?: string;
}

export interface CallOptions {
  /** Slug or id; null: that of the credential. */
  organization: string | null;
  signal?: AbortSignal;
  /** Sent as Idempotency-Key: equal requests with the same key are carried out once. */
  idempotencyKey?: string;
  /** Sent as If-Match: a record whose tag has changed is not written (code `PRECONDITION_FAILED`). */
  ifMatch?: string | null;
  /** How long the answer may take. @default 30000 */
  deadlineMs?: number;
}

const usualDeadlineMs = 30_000;

interface Refusal {
  status: number;
  code: string;
  requestId?: string | null;
  details?: Record<string, string[]>;
  retryAfterMs?: number | null;
  wasKeyed?: boolean;
}

/** Refusal of the API, or `status` 0 and code `UNREACHABLE` when it did not answer. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly requestId: string | null;
  /** The problems of each field, by its path; empty where the API reports them in the message alone. */
  readonly details: Readonly<Record<string, readonly string[]>>;
  /** The retry delay of the API; null: none. */
  readonly retryAfterMs: number | null;
  /** The request had an Idempotency-Key. */
  readonly wasKeyed: boolean;

  constructor(message: string, { status, code, requestId = null, details = {}, retryAfterMs = null, wasKeyed = false }: Refusal) {
    super(message);
    this.wasKeyed = wasKeyed;
    this.details = details;
    this.status = status;
    this.code = code;
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
  }

  /** The same request may succeed later. */
  get isPassing(): boolean {
    return this.status === 429 || this.isUnknown || this.code === 'IDEMPOTENCY_CONFLICT';
  }

  /** The record has changed since the version that the request is about. */
  get isOutdated(): boolean {
    return this.code === 'PRECONDITION_FAILED';
  }

  /** It is unknown whether the request was executed. */
  get isUnknown(): boolean {
    return this.status === 0 || this.status >= 500;
  }
}

let csrfToken: string | null = null;

/** Sent with each request that changes something. */
export function setCsrfToken(token: string | null): void {
  csrfToken = token;
}

/** Throws ApiError. */
export async function call<Name extends OperationName>(name: Name, input: Input<Name>, options: CallOptions): Promise<Answer<Name>> {
  const response = await send(name, input, options);
  return response.status === 204 ? null : await answered(response.json(), options);
}

/** The answer of an operation whose answer is no JSON. Throws ApiError. */
export async function readBytes<Name extends OperationName>(
  name: Name,
  input: Input<Name>,
  options: CallOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  return (await readTagged(name, input, options)).bytes;
}

export interface Tagged {
  bytes: Uint8Array<ArrayBuffer>;
  /** `ifMatch` of a change; null: the record has no version. */
  tag: string | null;
}

/** The bytes of a record with its version. Throws ApiError. */
export async function readTagged<Name extends OperationName>(name: Name, input: Input<Name>, options: CallOptions): Promise<Tagged> {
  const response = await send(name, input, options);
  return { bytes: new Uint8Array(await answered(response.arrayBuffer(), options)), tag: response.headers.get('etag') };
}

async function send<Name extends OperationName>(name: Name, input: Input<Name>, options: CallOptions): Promise<Response> {
  const [method = 'GET', template = ''] = name.split(' ');
  const url = urlOf(template, input, options.organization);
  const headers = new Headers({ accept: 'application/json' });
  const body = input.bodyText ?? (input.body === undefined ? undefined : JSON.stringify(input.body));
  if (body !== undefined) headers.set('content-type', 'application/json');
  if (method !== 'GET' && csrfToken !== null) headers.set('x-posthorn-csrf', csrfToken);
  if (options.ifMatch != null) headers.set('if-match', options.ifMatch);
  if (options.idempotencyKey !== undefined) headers.set('idempotency-key', options.idempotencyKey);
  const deadline = AbortSignal.timeout(options.deadlineMs ?? usualDeadlineMs);
  const signals = [deadline, ...(options.signal === undefined ? [] : [options.signal])];
  const request = { method, headers, body, credentials: 'same-origin', signal: AbortSignal.any(signals) } as const;
  const response = await answered(fetch(url, request), options);
  if (!response.ok) throw await refusal(response, options);
  return response;
}

/** The address that `call` uses, below the host. */
export function urlOf<Name extends OperationName>(template: string, { path, query }: Input<Name>, organization: string | null): string {
  const named: Record<string, unknown> = { ...path };
  const filled = template.replace(/\{(\w+)\}/g, (_all, key: string) => encodeURIComponent(String(named[key] ?? '')));
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query ?? {})) {
    if (value === undefined || value === null || value === '') continue;
    search.set(key, Array.isArray(value) ? value.join(',') : String(value));
  }
  const scope = organization === null ? '' : `/organizations/${encodeURIComponent(organization)}`;
  return `${basePath}/api${scope}${filled}${search.size === 0 ? '' : `?${search}`}`;
}

async function answered<Result>(
  response: Promise<Result>,
  { signal, idempotencyKey, deadlineMs = usualDeadlineMs }: CallOptions,
): Promise<Result> {
  try {
    return await response;
  } catch (thrown) {
    // The caller no longer needs the response.
    if (signal?.aborted === true) throw thrown;
    const isLate = thrown instanceof DOMException && thrown.name === 'TimeoutError';
    const message = isLate ? `The API did not answer within ${deadlineMs / 1000} s.` : 'The API does not answer.';
    throw new ApiError(message, { status: 0, code: 'UNREACHABLE', wasKeyed: idempotencyKey !== undefined });
  }
}

/** The API's reason for refusing a request. */
export async function refusal(response: Response, { idempotencyKey }: Partial<CallOptions> = {}): Promise<ApiError> {
  const text = await response.text().catch(() => '');
  const retryAfter = response.headers.get('retry-after') ?? '';
  return new ApiError(messageIn(text) ?? `The API answered ${response.status}.`, {
    status: response.status,
    code: response.headers.get('x-error-code') ?? 'UNKNOWN',
    requestId: response.headers.get('x-request-id'),
    details: detailsIn(text),
    retryAfterMs: /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1000 : null,
    wasKeyed: idempotencyKey !== undefined,
  });
}

function detailsIn(text: string): Record<string, string[]> {
  try {
    const { details } = JSON.parse(text);
    return Object.fromEntries(Object.entries(Object(details)).map(([path, texts]) => [path, [texts].flat().map(String)]));
  } catch {
    return {};
  }
}

function messageIn(text: string): string | null {
  try {
    const { message, error } = JSON.parse(text);
    if (typeof message === 'string') return message;
    return typeof error === 'string' ? error : null;
  } catch {
    return null;
  }
}
