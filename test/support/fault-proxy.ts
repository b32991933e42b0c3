import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent, type Dispatcher, request } from 'undici';
import { withLongTimeouts } from './long-timeouts.ts';

/** What the proxy does to one request instead of passing it on. */
export interface Answer {
  status: number;
  headers?: Record<string, string>;
  body?: unknown;
}

export interface SeenRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  isWatch: boolean;
}

/** A stream that is open through the proxy. */
interface OpenStream {
  response: ServerResponse;
  muted: boolean;
}

/** An HTTP proxy in front of a real API server that misbehaves on demand. */
export class FaultProxy {
  readonly url: string;
  /** Every request so far. */
  readonly seen: SeenRequest[] = [];
  /** Called for each request; null passes it on. */
  fault: (seen: SeenRequest) => Answer | null = () => null;
  readonly #streams = new Set<OpenStream>();
  #mutesNew = false;
  readonly #close: () => Promise<void>;

  private constructor(url: string, close: () => Promise<void>) {
    this.url = url;
    this.#close = close;
  }

  static async start(target: { url: string; caFile: string }): Promise<FaultProxy> {
    const agent = new Agent({ connect: { ca: readFileSync(target.caFile) }, bodyTimeout: 0 });
    const server = createServer((incoming, response) => {
      proxy.#serve(target.url, agent, incoming, response).catch(() => response.destroy());
    });
    withLongTimeouts(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    const proxy = new FaultProxy(`http://127.0.0.1:${address.port}`, async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await agent.destroy();
    });
    return proxy;
  }

  /** How many lists (not their further pages) and watches have been requested. */
  get counts(): { lists: number; watches: number } {
    const gets = this.seen.filter((each) => each.method === 'GET');
    return {
      lists: gets.filter((each) => !each.isWatch && !each.query.has('continue')).length,
      watches: gets.filter((each) => each.isWatch).length,
    };
  }

  get openStreams(): number {
    return this.#streams.size;
  }

  /** Resets the connections of all open streams. */
  resetStreams(): void {
    for (const { response } of this.#streams) response.socket?.resetAndDestroy();
  }

  /** Open streams stay open and send nothing any more. */
  muteStreams(): void {
    for (const stream of this.#streams) stream.muted = true;
  }

  /** Open streams, and those that are opened before `endStreamsWith`, send nothing. */
  muteAllStreams(): void {
    this.#mutesNew = true;
    this.muteStreams();
  }

  /** Writes a line into all open streams and ends them. */
  endStreamsWith(line: unknown): void {
    this.#mutesNew = false;
    for (const { response } of this.#streams) response.end(`${JSON.stringify(line)}\n`);
  }

  async stop(): Promise<void> {
    await this.#close();
  }

  async #serve(target: string, agent: Agent, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(incoming.url ?? '/', target);
    const isWatch = url.searchParams.has('watch');
    const seen: SeenRequest = { method: incoming.method ?? 'GET', path: url.pathname, query: url.searchParams, isWatch };
    this.seen.push(seen);
    const answer = this.fault(seen);
    if (answer !== null) {
      response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
      response.end(JSON.stringify(answer.body ?? {}));
      return;
    }
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const { authorization = '', accept = '', 'content-type': contentType } = incoming.headers;
    const upstream = await request(url, {
      method: seen.method as Dispatcher.HttpMethod,
      dispatcher: agent,
      headers: { authorization, accept, ...(contentType !== undefined && { 'content-type': contentType }) },
      body: contentType === undefined ? null : incoming,
      signal: gone.signal,
    });
    response.writeHead(upstream.statusCode, { 'content-type': 'application/json' });
    response.flushHeaders();
    const stream: OpenStream = { response, muted: this.#mutesNew };
    if (isWatch) this.#streams.add(stream);
    try {
      for await (const chunk of upstream.body) if (!stream.muted) response.write(chunk);
      response.end();
    } finally {
      this.#streams.delete(stream);
    }
  }
}
