import { types } from 'node:util';
import { Response as BoundedResponse, type Dispatcher, fetch, type RequestInit, request } from 'undici';

/** A request as the SDKs of the stores make it. */
export interface StoreRequest {
  url: string;
  method: string;
  headers: Record<string, string>;
  body: Buffer | string | null;
}

export interface StoreResponse {
  status: number;
  /** Names in lower case. */
  headers: Record<string, string>;
  body: Buffer;
}

/** The SDKs parse a response in one piece, and XML of 1 MiB takes a second. Responses to uploads have less than 4 KiB. */
const maxBodyBytes = 32 * 1024;
/** Headers that undici sets itself. It does not wait for a `100 Continue`, which the S3 SDK requests for bodies of 2 MiB and more. */
const ownHeaders = new Set(['host', 'content-length', 'expect']);

/**
 * How the SDK of a store reaches it during one upload: over the guarded connections of deliveries, until the signal
 * aborts. It keeps the last response of the store, because the errors of the SDKs differ, and some quote the request.
 */
export class Transport {
  readonly signal: AbortSignal;
  readonly #dispatcher: Dispatcher;
  #last: { status: number; retryAfter: string | null } | null = null;
  #error: Error | null = null;

  constructor(dispatcher: Dispatcher, signal: AbortSignal) {
    this.#dispatcher = dispatcher;
    this.signal = signal;
  }

  /** Status of the last response; null when the last request had none. */
  get last(): { status: number; retryAfter: string | null } | null {
    return this.#last;
  }

  /** Why the last request had no response. */
  get error(): Error | null {
    return this.#error;
  }

  /** Does not follow redirects; bodies above 32 KiB are refused: no answer to an upload has one. */
  async send({ url, method, headers, body }: StoreRequest): Promise<StoreResponse> {
    return await this.#watch(async () => {
      const options = { method, headers: { ...headers }, body, dispatcher: this.#dispatcher, signal: this.signal };
      for (const name of Object.keys(options.headers)) if (ownHeaders.has(name.toLowerCase())) delete options.headers[name];
      const response = await request(url, options);
      const found = Object.entries(response.headers).map(([name, value]): [string, string] => [name.toLowerCase(), String(value)]);
      const answer = { status: response.statusCode, headers: Object.fromEntries(found), body: await boundedBody(response.body) };
      return { outcome: answer, status: answer.status, retryAfter: answer.headers['retry-after'] ?? null };
    });
  }

  /** `send` with the interface of `fetch`. Resolves after the whole body was received. */
  readonly fetch: typeof globalThis.fetch = async (input, init = {}) => {
    const url = input instanceof Request ? input.url : input;
    const signal = init.signal == null ? this.signal : AbortSignal.any([init.signal, this.signal]);
    // Node's own `fetch` is an undici of another version: the same interface under other types.
    const options = { ...(init as RequestInit), dispatcher: this.#dispatcher, redirect: 'manual' as const, signal };
    return await this.#watch(async () => {
      const response = await fetch(url, options);
      const body = response.body === null ? null : await boundedBody(response.body);
      const answer = new BoundedResponse(body, { status: response.status, headers: response.headers });
      return { outcome: answer as unknown as Response, status: response.status, retryAfter: response.headers.get('retry-after') };
    });
  };

  async #watch<T>(send: () => Promise<{ outcome: T; status: number; retryAfter: string | null }>): Promise<T> {
    this.#last = null;
    this.#error = null;
    try {
      const { outcome, status, retryAfter } = await send();
      this.#last = { status, retryAfter };
      return outcome;
    } catch (error) {
      this.#error = rootCause(error);
      throw error;
    }
  }
}

async function boundedBody(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxBodyBytes) throw new Error('the answer of the store is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** `fetch` wraps the cause in an error without details. */
function rootCause(error: unknown): Error {
  const own = types.isNativeError(error) ? error : new Error(String(error));
  return own.name === 'TypeError' && types.isNativeError(own.cause) ? own.cause : own;
}
