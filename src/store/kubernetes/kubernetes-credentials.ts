import type { RequestOptions } from 'node:https';
import type { KubeConfig } from '@kubernetes/client-node';
import { Agent, type Dispatcher } from 'undici';
import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';

/** What a request to the API server needs: where it is, who we are, and the connections that are shared by all requests. */
export interface Access {
  /** Without a slash at the end. */
  server: string;
  headers: Record<string, string>;
  dispatcher: Dispatcher;
}

const keptMs = 30_000;
const connectTimeoutMs = 10_000;
const keepAliveMs = 60_000;

/**
 * Reads server, certificates and token by a KubeConfig, at most every 30 s or when `refresh` requests it, and keeps one
 * Agent as long as the TLS settings stay. (The calls of @kubernetes/client-node open a connection per request.)
 */
export class Credentials {
  readonly #load: () => KubeConfig;
  readonly #clock: Clock;
  #config: KubeConfig | null = null;
  #current: { access: Access; tls: string; readAtMs: number } | null = null;

  constructor(load: () => KubeConfig, clock: Clock) {
    this.#load = load;
    this.#clock = clock;
  }

  async access(): Promise<Access> {
    if (this.#current !== null && this.#clock.now() - this.#current.readAtMs < keptMs) return this.#current.access;
    return this.#read();
  }

  /** Reads everything again, also a token file that the KubeConfig would keep for a minute. */
  async refresh(): Promise<Access> {
    this.#config = null;
    return this.#read();
  }

  async close(): Promise<void> {
    await this.#current?.access.dispatcher.destroy();
    this.#current = null;
  }

  async #read(): Promise<Access> {
    this.#config ??= this.#load();
    const server = this.#config.getCurrentCluster()?.server.replace(/\/+$/, '');
    if (server === undefined) throw new PosthornError('INVALID_CONFIG', 'the kubeconfig names no cluster: set its current-context');
    const options: RequestOptions = {};
    await this.#config.applyToHTTPSOptions(options);
    const { ca, cert, key, servername, rejectUnauthorized } = options;
    const tls = JSON.stringify([server, ca, cert, key, servername, rejectUnauthorized].map(String));
    const previous = this.#current;
    const dispatcher =
      previous?.tls === tls
        ? previous.access.dispatcher
        : new Agent({
            connect: { ca, cert, key, servername, rejectUnauthorized, timeout: connectTimeoutMs } as ConnectOptions,
            // One stuck HTTP/2 connection would take every watch and write with it.
            allowH2: false,
            keepAliveTimeout: keepAliveMs,
            headersTimeout: 0,
            bodyTimeout: 0,
          });
    this.#current = { access: { server, headers: authorization(options), dispatcher }, tls, readAtMs: this.#clock.now() };
    // Requests and watches under way on the old Agent end by themselves.
    if (previous !== null && previous.access.dispatcher !== dispatcher) void previous.access.dispatcher.close();
    return this.#current.access;
  }
}

type ConnectOptions = Exclude<NonNullable<Agent.Options['connect']>, (...args: never[]) => unknown>;

function authorization(options: RequestOptions): Record<string, string> {
  const headers: Record<string, string> = {};
  if (typeof options.auth === 'string') headers['Authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
  for (const [name, value] of Object.entries(options.headers ?? {})) headers[name] = String(value);
  return headers;
}
