import type { KubeConfig } from '@kubernetes/client-node';
import { type Dispatcher, request as send } from 'undici';
import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { parseJson } from '../../core/read-json.ts';
import { type Access, Credentials } from './kubernetes-credentials.ts';
import { statusError } from './status-error.ts';
import { yamlOf } from './yaml-body.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Content type of server-side apply. */
export const applyPatch = 'application/apply-patch+yaml';

/** Content type of an RFC 6902 patch. */
export const jsonPatch = 'application/json-patch+json';

export interface ApiRequestOptions {
  /** Fields that are undefined are left out. */
  query?: Record<string, string | number | boolean | undefined>;
  body?: unknown;
  /** Default `application/json`. */
  contentType?: string;
  accept?: string;
  signal?: AbortSignal;
  /** From sending to the last byte of the answer; for a stream to its headers. Default 15 s. */
  deadlineMs?: number;
  /** Maximum length of the answer: no more of a longer one is read, AnswerTooLargeError. Default: any length. */
  maxBytes?: number | undefined;
}

/** The answer of the API server is longer than the request takes. */
export class AnswerTooLargeError extends Error {}

const defaultDeadlineMs = 15_000;

/**
 * Requests to the Kubernetes API server over one shared Agent: raw JSON, a deadline on each, credentials read again
 * once after a 401. Throws the `PosthornError`s of `ResourceStore`; UNAVAILABLE when the server cannot be reached or does not
 * answer in time. What a write then did is unknown.
 */
export class KubernetesApi {
  readonly #credentials: Credentials;
  readonly #clock: Clock;
  readonly #userAgent: string;
  #clockSkewMs: number | null = null;

  /** `loadKubeConfig` is called again when the credentials must be reloaded. */
  constructor(options: { loadKubeConfig: () => KubeConfig; clock: Clock; userAgent?: string }) {
    this.#credentials = new Credentials(options.loadKubeConfig, options.clock);
    this.#clock = options.clock;
    this.#userAgent = options.userAgent ?? 'posthorn';
  }

  /** This clock minus that of the API server, which reports whole seconds; null: it has not responded yet. */
  get clockSkewMs(): number | null {
    return this.#clockSkewMs;
  }

  /** The parsed JSON of a successful answer. */
  async request(method: Method, path: string, options: ApiRequestOptions = {}): Promise<unknown> {
    const deadlineMs = options.deadlineMs ?? defaultDeadlineMs;
    // AbortSignal.timeout would hold what belongs to the request until its time is over: hundreds of requests a second, 15 s each.
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(new DOMException('the deadline is over', 'TimeoutError')), deadlineMs);
    const signal = options.signal === undefined ? timeout.signal : AbortSignal.any([options.signal, timeout.signal]);
    try {
      const response = await this.#send(method, path, options, signal);
      const { maxBytes } = options;
      const text = await (maxBytes === undefined ? response.body.text() : textWithin(response.body, maxBytes));
      return text === '' ? null : parseJson(text);
    } catch (error) {
      throw asStoreError(error, `${method} ${path}`, deadlineMs, options.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  /** The body of a successful answer as it arrives; the caller reads or destroys it. `signal` ends it at any time. */
  async stream(path: string, options: ApiRequestOptions & { signal: AbortSignal }): Promise<Dispatcher.ResponseData['body']> {
    const deadlineMs = options.deadlineMs ?? defaultDeadlineMs;
    const opening = new AbortController();
    const timer = setTimeout(() => opening.abort(), deadlineMs);
    try {
      const response = await this.#send('GET', path, options, AbortSignal.any([options.signal, opening.signal]));
      return response.body;
    } catch (error) {
      throw asStoreError(error, `GET ${path}`, deadlineMs, options.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  async close(): Promise<void> {
    await this.#credentials.close();
  }

  async #send(method: Method, path: string, options: ApiRequestOptions, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const request = { method, path, options, userAgent: this.#userAgent, signal };
    const access = await this.#credentials.access();
    const sentMs = this.#clock.now();
    let response = await attempt(access, request);
    this.#compareClocks(sentMs, response);
    if (response.statusCode === 401) {
      await response.body.dump();
      response = await attempt(await this.#credentials.refresh(), request);
    }
    if (response.statusCode < 300) return response;
    const seconds = Number(response.headers['retry-after']);
    throw statusError(response.statusCode, await response.body.text(), Number.isFinite(seconds) && seconds > 0 ? seconds : undefined);
  }

  #compareClocks(sentMs: number, { headers: { date } }: Dispatcher.ResponseData): void {
    // In the middle of its second.
    const serverMs = Date.parse(String(date)) + 500;
    if (Number.isFinite(serverMs)) this.#clockSkewMs = (sentMs + this.#clock.now()) / 2 - serverMs;
  }
}

interface Attempt {
  method: Method;
  path: string;
  options: ApiRequestOptions;
  userAgent: string;
  signal: AbortSignal;
}

function attempt(access: Access, { method, path, options, userAgent, signal }: Attempt): Promise<Dispatcher.ResponseData> {
  const accept = options.accept ?? 'application/json';
  const headers: Record<string, string> = { ...access.headers, accept, 'user-agent': userAgent };
  if (options.body !== undefined) headers['content-type'] = options.contentType ?? 'application/json';
  return send(access.server + path + queryText(options.query), {
    method,
    headers,
    signal,
    dispatcher: access.dispatcher,
    ...(options.body === undefined
      ? {}
      : { body: options.contentType === applyPatch ? yamlOf(options.body) : JSON.stringify(options.body) }),
  });
}

async function textWithin(body: Dispatcher.ResponseData['body'], maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  // Leaving the loop ends the connection.
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxBytes) throw new AnswerTooLargeError(`more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function queryText(query: ApiRequestOptions['query'] = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value));
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}

function asStoreError(error: unknown, what: string, deadlineMs: number, signal: AbortSignal | undefined): unknown {
  if (error instanceof PosthornError || error instanceof AnswerTooLargeError) return error;
  if (signal?.aborted === true) return signal.reason;
  const timedOut = error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError');
  const text = timedOut ? `did not end within ${deadlineMs} ms` : 'failed';
  return new PosthornError('UNAVAILABLE', `${what} ${text}${timedOut ? '' : `: ${reason(error)}`}`, { cause: error });
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
